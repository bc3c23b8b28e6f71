"""A lying operator signs whatever he likes: only what has the form of a receipt is read as one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.canonical import canonical_json
from grapheraser.errors import VerificationError
from grapheraser.receipts import Part, Receipt
from grapheraser.receipts.checking import check_part
from grapheraser.receipts.part import Place, part_leaf
from grapheraser.receipts.tree import root_of
from tests.strategies import small_graph

pytest.importorskip("cryptography", reason="needs the extra 'sign'")
from grapheraser.receipts.keys import Checkpoint, PublicKey
from grapheraser.store.keys import current_signer


@pytest.fixture(scope="module")
def receipt() -> Receipt:
    graph = small_graph()
    eraser = ge.GraphEraser("closed-form").fit(graph)
    nodes = graph.train_nodes
    edge = next(pair for pair in graph.edges.tolist() if nodes[0] not in pair)
    requests: list[Any] = [ge.Nodes(nodes[:1]), ge.Edges([edge]), ge.Features(nodes[1:2])]
    return eraser.unlearn([*requests, ge.Labels(nodes[2:3])])


@pytest.fixture(scope="module")
def key() -> PublicKey:
    signer = current_signer()
    assert signer is not None
    return PublicKey(signer.public)


def signed(part: Part, about: Any = None, **fields: Any) -> Part:
    """A part that says something else, signed and logged by the operator himself."""
    signer = current_signer()
    assert signer is not None
    about = part.about if about is None else about
    leaf = part_leaf(part.nonce, about)
    said = {"request": leaf.hex(), "requests": 1, "sequence": 1, "previous": None, **fields}
    made = dataclasses.replace(part.receipt, signatures=(), **said).signed_by(signer, signer.id)
    note = Checkpoint(made.run, 1, root_of([made.leaf])).signed_by(signer)
    alone = Place(0, 1, ())
    changes = {"about": about, "place": alone, "log": alone, "checkpoint": note, "opening": None}
    return dataclasses.replace(part, receipt=made, **changes)


def node_part(receipt: Receipt) -> Part:
    return next(part for part in receipt.parts if part.about.get("forget") == "node")


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"Forget": "node", "ids": ["1"]},
        {"forget": "node\u200b", "ids": ["1"]},
        {"forget ": "node", "ids": ["1"]},
        {"forget": "node", "ids": [1, 2]},
        {"forget": "node", "ids": ["1", "2"]},
        {"forget": "node", "ids": "1"},
        {"forget": "node", "ids": ["01"]},
        {"forget": "node", "ids": [str(2**63)]},
        {"forget": "node"},
        {"forget": "edge", "ids": ["1"]},
        {"forget": "edge", "ids": ["1", "2"], "note": "\x1b[2Jvalid"},
        {"forget": "node", "ids": ["1"], "names": ["ada", "bob"]},
        {"forget": "everything", "ids": ["1"]},
        {"forget": ["node"], "ids": ["1"]},
        {"add": "node", "ids": ["1"], "values": ["many"]},
        {"reshard": "many"},
        {"reshard": 3, "ids": []},
    ],
    ids=canonical_json,
)
def test_a_part_about_anything_else_is_refused(
    receipt: Receipt, key: PublicKey, about: dict[str, Any]
) -> None:
    forged = signed(node_part(receipt), about)
    with pytest.raises(VerificationError):
        check_part(forged, [key])
    with pytest.raises(VerificationError):
        Part.from_json(canonical_json(forged.to_dict()))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("action", "forgot"),
        ("run", "two words"),
        ("seed", "\x1b[2J"),
        ("completed_at", "yesterday"),
        ("engine", "cpu\nreceipt: valid"),
        ("sequence", 0),
        ("counts", {"nodes": -1}),
        ("counts", {"nodes\x1b": 1}),
        ("versions", {"torch": "x" * 5000}),
        ("aggregation", {"name": "mean", "also": "true"}),
        ("exactness", {"statement": "exact, on my word", "reason": "so"}),
        ("exactness", {"statement": "exact", "reason": "so\u202e"}),
        ("exactness", {"statement": "exact", "reason": "so", "audited": "yes"}),
    ],
)
def test_a_field_of_another_form_is_refused(receipt: Receipt, name: str, value: Any) -> None:
    forged = dataclasses.replace(receipt, signatures=(), **{name: value})
    with pytest.raises(VerificationError, match=f"'{name}' is of another form"):
        Receipt.from_json(forged.to_json())


def test_only_what_shows_that_it_is_gone_is_valid(receipt: Receipt, key: PublicKey) -> None:
    found = {part.about["forget"]: check_part(part, [key]) for part in receipt.parts}
    assert {noun: one.verdict for noun, one in found.items()} == {
        "node": "valid",
        "edge": "signed",
        "features": "signed",
        "label": "signed",
    }
    assert "operator's word" in found["edge"].in_words
    with pytest.raises(VerificationError, match="does not show that the node is gone"):
        check_part(signed(node_part(receipt)), [key])
