"""The demonstration's page: its verdict, its receipts, and nothing from anywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

import grapheraser as ge
from grapheraser.demo.page import demo_page
from grapheraser.demo.story import DemoResult, run_demo


@pytest.fixture(scope="module")
def result(demo: ge.Graph) -> DemoResult:
    graph = demo.subgraph(demo.ids[:300])
    return run_demo(graph, ge.GraphEraser(partition="hash", num_shards=3, epochs=3), requests=2)


def test_the_page_has_every_receipt_and_three_pictures(result: DemoResult) -> None:
    page = demo_page(result)
    assert "verified: bit-identical" in page
    assert page.count('src="data:image/png;base64,') == 3
    for receipt in result.receipts:
        assert receipt.digest[:16] in page
    assert page.count("<td>1 node</td>") == page.count("<td>1 edge</td>") == 2
    assert "http" not in page


def test_a_run_that_differs_is_said_so_at_the_top(result: DemoResult) -> None:
    verification = replace(result.verification, identical=False)
    page = demo_page(replace(result, verification=verification))
    assert "NOT identical" in page
    assert "verified" not in page
