"""The printed receipt: first what anybody understands, hashes last, no more than is claimed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import grapheraser as ge
from grapheraser.receipts import EXACT, EXACT_GIVEN_PARTITION, NOT_EXACT, Part
from grapheraser.reports.pages.receipt import plainly, receipt_page
from tests.strategies import small_graph


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    graph = small_graph()
    node, other, third = map(int, graph.train_nodes[:3])
    edge = next((int(a), int(b)) for a, b in zip(graph.sources, graph.indices, strict=True)
                if not {node, other, third} & {int(graph.ids[a]), int(graph.ids[b])})  # fmt: skip
    pair = tuple(int(graph.ids[end]) for end in edge)
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(graph)
    asked: list[ge.Nodes | ge.Edges | ge.Features | ge.Labels] = [
        ge.Nodes([node]),
        ge.Edges([pair]),
        ge.Features([other]),
        ge.Labels([third]),
    ]
    return list(eraser.unlearn(asked).parts)


def test_it_begins_with_a_sentence_for_a_citizen_and_ends_with_hashes(parts: list[Part]) -> None:
    page = receipt_page(parts[:1])
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    body = " ".join(text.split("Receipt", 2)[2].split())
    assert re.match(r"(unsigned )?On \d{1,2} [A-Z][a-z]+ \d{4}, ", body)
    first = re.search(r"\b[0-9a-f]{32,}\b", body)
    assert first is not None
    for heading in ("What is claimed", "It says nothing of", "How to check it"):
        assert body.index(heading) < first.start()


def test_each_kind_is_said_in_words(parts: list[Part]) -> None:
    said = [plainly(part) for part in parts]
    for words in ("the record ", "the edge between ", "the features of ", "the label of "):
        assert sum(words in one for one in said) == 1
    for part, one in zip(parts, said, strict=True):
        assert all(end in one for end in part.about["ids"])
        assert "removed from this model and the data behind it." in one


@pytest.mark.parametrize(
    ("statement", "ends"),
    [
        (EXACT, "without it from the start."),
        (EXACT_GIVEN_PARTITION, "without it from the start, given what is named below."),
        (NOT_EXACT, "and no more than this is claimed."),
        (f"{NOT_EXACT} given schema", "and no more than this is claimed."),
    ],
)
def test_it_says_no_more_than_the_claim(parts: list[Part], statement: str, ends: str) -> None:
    receipt = parts[0].receipt
    claimed = replace(receipt, exactness={**receipt.exactness, "statement": statement})
    assert plainly(replace(parts[0], receipt=claimed)).endswith(ends)
    assert ("the same as if" in ends) is False
    same = "the same as if" in plainly(replace(parts[0], receipt=claimed))
    assert same is not statement.startswith(NOT_EXACT)
