from __future__ import annotations

from grapheraser.reports.card import model_card

FACTS = {
    "graph": "a|b",
    "noun": "node",
    "nodes": 2700,
    "edges": 5,
    "features": 3,
    "classes": ["x", "<y>"],
    "training_nodes": 4,
    "test_nodes": 1,
    "f1": 0.5,
    "model": "gcn",
    "shards": [0],
    "partition": "hash",
    "claim": {"statement": "exact", "reason": "It follows."},
    "receipts": 2,
    "last": "ab",
    "log": "l",
    "checkpoint": None,
    "versions": {"numpy": "2"},
    "notes": [],
}


def test_a_card_of_a_run_whose_receipts_are_unsigned_says_so() -> None:
    card = model_card(FACTS)
    assert "| statement | exact. It follows. |\n\nThe log is not signed.\n\n## Limits" in card


def test_nothing_that_a_graph_is_called_breaks_the_head_or_a_table() -> None:
    card = model_card({**FACTS, "graph": 'a|b "\n---\nx'})
    head = card.split("\n---\n")[0].splitlines()
    assert head[0] == "---"
    assert len(head) == 5, "a line for each key"
    assert '| graph | a\\|b " --- x |' in card
    assert "| classes | x, <y> |" in card
