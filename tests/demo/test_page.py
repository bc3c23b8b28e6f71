"""The demonstration's page: its verdict, its evidence, its pictures, and nothing from anywhere."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from grapheraser.cli.demo import told
from grapheraser.demo.page import demo_page
from grapheraser.demo.story import DemoResult
from grapheraser.reports.wording import duration
from tests.strategies import HAS_TORCH


@pytest.fixture(scope="module")
def page(result: DemoResult) -> str:
    return demo_page(result, "grapheraser receipt verify receipt.json --key operator.pub")


def test_the_page_has_every_receipt_and_seven_drawings(page: str, result: DemoResult) -> None:
    assert "verified: bit-identical" in page
    assert page.count('<svg class="drawing"') == page.count('role="img" aria-label="') == 7
    for receipt in result.receipts:
        assert f"<td>{receipt.digest[:8]}</td>" in page
    assert page.count("<td>1 node</td>") == page.count("<td>1 edge</td>") == 2
    assert "http" not in page
    assert "<img" not in page
    assert "<script" not in page


def test_the_page_tells_f1_and_the_times_of_all_rivals(page: str, result: DemoResult) -> None:
    for value in result.f1.values():
        assert f">{value:.4f}</text>" in page
    for rival in result.rivals:
        assert f"{duration(result.seconds[rival])}, {result.times(rival):,.0f}x</text>" in page
    assert ("5 epochs measured and scaled" in page) == HAS_TORCH


def test_a_rival_that_is_not_installed_is_left_out_and_that_is_told(result: DemoResult) -> None:
    seconds = {name: value for name, value in result.seconds.items() if name != "pyg"}
    alone = replace(result, seconds=seconds)
    page = demo_page(alone)
    assert "Plain PyG: left out, since it is not installed" in page
    assert "retrain one model, plain PyG" not in page
    assert any("plain PyG" in line and "left out" in line for line in told(alone))
    assert alone.to_dict()["speedup"].keys() == {"retrain", "afresh"}


def test_the_page_shows_digests_signature_and_slot(page: str, result: DemoResult) -> None:
    shard = f"shard {result.scene.shard}"
    before = result.scene.digests_before[shard][:8]
    after = result.proof.unlearned[shard][:8]
    cells = (shard, after, after, "equal", before)
    assert "".join(f"<td>{cell}</td>" for cell in cells) in re.sub(r"\s*(<td>)", r"\1", page)
    assert before != after
    assert result.proof.key is not None
    assert f"<code>{result.proof.key.id}</code>" in page
    assert f"<code>{result.proof.slot[0]}</code><br>After: <b>empty</b>" in page
    assert "grapheraser receipt verify receipt.json" in page


def test_without_a_key_the_page_says_that_the_receipt_is_unsigned(result: DemoResult) -> None:
    page = demo_page(replace(result, proof=replace(result.proof, key=None)))
    assert ">unsigned</span>" in page
    assert "receipt verify" not in page


def test_a_run_that_differs_is_said_so_at_the_top(result: DemoResult) -> None:
    verification = replace(result.proof.verification, identical=False)
    page = demo_page(replace(result, proof=replace(result.proof, verification=verification)))
    assert "NOT identical" in page
    assert "bit-identical" not in page


def test_a_shard_with_another_digest_is_named_different(result: DemoResult) -> None:
    shard = f"shard {result.scene.shard}"
    afresh = {**result.proof.afresh, shard: "0" * 64}
    page = demo_page(replace(result, proof=replace(result.proof, afresh=afresh)))
    assert "<td>DIFFERENT</td>" in page
    assert "NOT identical" in page
