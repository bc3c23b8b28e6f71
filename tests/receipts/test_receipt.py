"""Receipts: one spelling, a chain that notices tampering, and nothing personal in them."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import VerificationError
from grapheraser.receipts import (
    EXACT,
    EXACT_GIVEN_PARTITION,
    Ends,
    Receipt,
    canonical_json,
    check_chain,
    digest_of,
)
from grapheraser.receipts.envelope import PAYLOAD, Signature, spelled, statement_of
from grapheraser.store import shard_digest
from tests.receipts.examples import chain, ends_of, example, hashed


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: json.dumps(json.loads(text), indent=4),
        lambda text: '{"action":"insert",' + text[1:],
        lambda text: text[:-1] + ',"action":"unlearn"}',
        lambda text: text.replace("unlearn", "\\u0075nlearn"),
        lambda text: text.replace('"requests":1,', '"requests":1.0,'),
        lambda text: " " + text,
    ],
)
def test_only_one_spelling_is_a_receipt(spell: Callable[[str], str]) -> None:
    statement = example(1, None).payload.decode()
    with pytest.raises(VerificationError, match=r"canonically|another form"):
        Receipt.from_json(spelled(PAYLOAD, spell(statement).encode(), ()))
    envelope = example(1, None).to_json()
    if spell(envelope) != envelope:
        with pytest.raises(VerificationError, match=r"canonically|unknown fields"):
            Receipt.from_json(spell(envelope))


def test_canonical_json_has_one_spelling() -> None:
    text = chain(1)[0].to_json()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert text.isascii()
    assert canonical_json({"b": 1, "a": [1.5, "ü"]}) == '{"a":[1.5,"\\u00fc"],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_a_receipt_is_read_back_as_it_was_and_its_digest_is_plain_sha256() -> None:
    receipt = chain(1)[0]
    text = receipt.to_json()
    assert Receipt.from_json(text) == receipt
    assert Receipt.from_json(text + "\n") == receipt
    assert receipt.digest == hashlib.sha256(text.encode()).hexdigest()
    assert digest_of(json.loads(text)) == receipt.digest


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"format":"other"}'])
def test_anything_else_is_not_a_receipt(text: str) -> None:
    with pytest.raises(VerificationError):
        Receipt.from_json(text)


def test_missing_unknown_and_mistyped_fields_are_refused() -> None:
    fields = chain(1)[0].to_dict()
    others: list[dict[str, Any]] = [{**fields, "extra": 1}]
    others += [{name: value for name, value in fields.items() if name != "request"}]
    others += [{**fields, name: None} for name in fields if name != "previous"]
    others += [{**fields, "previous": 3}, {**fields, "request": "f" * 63}, {**fields, "counts": []}]
    others += [{**fields, "exactness": {"statement": "exact"}}, {**fields, "sequence": True}]
    for other in others:
        with pytest.raises(VerificationError):
            Receipt.from_json(spelled(PAYLOAD, statement_of({"after": "", **other}), ()))


def test_a_receipt_is_an_in_toto_statement_about_the_state_that_it_led_to() -> None:
    receipt = example(1, None)
    statement = json.loads(receipt.payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:grapheraser:receipt:2"
    assert statement["subject"] == [{"name": "state", "digest": {"sha256": receipt.after}}]
    assert statement["predicate"]["seed"] == "18446744073709551615", "as text: jq would round it"
    assert any("backups" in line for line in statement["predicate"]["out_of_scope"])
    envelope = json.loads(receipt.to_json())
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert envelope["signatures"] == []
    assert not receipt.is_signed


@pytest.mark.parametrize(
    "edit",
    [
        {"predicateType": "urn:grapheraser:receipt:3"},
        {"subject": [{"name": "state", "digest": {"sha256": "0" * 64}}]},
        {"_type": "https://in-toto.io/Statement/v0.1"},
    ],
)
def test_another_statement_is_no_receipt(edit: dict[str, Any]) -> None:
    statement = json.loads(example(1, None).payload) | edit
    with pytest.raises(VerificationError):
        Receipt.from_json(spelled(PAYLOAD, canonical_json(statement).encode(), ()))


def test_a_chain_that_holds_is_accepted() -> None:
    receipts = chain()
    check_chain(receipts)
    check_chain(receipts, state=hashed("state 4"))
    check_chain([])


FIELDS = [field.name for field in dataclasses.fields(Receipt) if field.compare]


def altered(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case None:
            return "x"
        case dict():
            key = sorted(value)[0] if value else "x"
            return {**value, key: altered(value.get(key))}
        case tuple() | list():
            return (*value[1:], Signature("x", "AAAA"))
        case _:
            raise AssertionError(value)


@given(st.data())
def test_a_change_of_any_field_of_any_receipt_with_a_successor_is_noticed(
    data: st.DataObject,
) -> None:
    receipts = chain()
    at = data.draw(st.integers(0, len(receipts) - 2))
    field = data.draw(st.sampled_from(FIELDS))
    changed = dataclasses.replace(receipts[at], **{field: altered(getattr(receipts[at], field))})
    assert changed != receipts[at]
    receipts[at] = changed
    with pytest.raises(VerificationError):
        check_chain(receipts)


def with_last(eraser: ge.GraphEraser, forged: Receipt) -> ge.GraphEraser:
    """The same run with another last receipt; it still says which one was written."""
    copied = copy.copy(eraser)
    receipts = (*eraser.receipts_[:-1], forged)
    copied._fitted = dataclasses.replace(eraser._fitted, receipts=receipts)
    return copied


@pytest.mark.parametrize("field", FIELDS)
def test_a_change_of_any_field_of_the_last_receipt_is_noticed(
    run: tuple[ge.GraphEraser, list[Receipt]], field: str
) -> None:
    eraser, (*_, last) = run
    assert eraser.verify().identical
    forged = dataclasses.replace(last, **{field: altered(getattr(last, field))})
    found = with_last(eraser, forged).verify()
    assert not found.identical
    assert found.receipts == 3


FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "statement": ({"exactness": {"statement": EXACT_GIVEN_PARTITION}}, "another exactness"),
    "configuration": ({"configuration": "f" * 64}, "another configuration"),
    "engine": ({"engine": "abacus"}, "another engine"),
    "aggregation": ({"aggregation": {"name": "mean"}}, "another aggregation"),
    "state": ({"after": "0" * 64}, "did not lead to the run's current state"),
    "register": ({"register_after": "0" * 64}, "another register"),
    "seed": ({"seed": "1"}, "another seed"),
    "signature": ({"completed_at": "2026-01-01T00:00:00+00:00"}, "signature of receipt 3"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_last_receipt_forged_with_its_digest_still_has_to_fit_the_state(
    run: tuple[ge.GraphEraser, list[Receipt]], case: str
) -> None:
    eraser, (*_, last) = run
    changes, message = FORGED[case]
    forged = last
    for field, values in changes.items():
        old = getattr(last, field)
        new: Any = {**old, **values} if isinstance(values, dict) else values
        forged = dataclasses.replace(forged, **{field: new})
    copied = with_last(eraser, forged)
    now = eraser._fitted.ends
    ends = Ends(now.run, now.fitted, now.configuration, now.fitted)
    for receipt in copied.receipts_:
        ends = ends.then(receipt)
    ends = dataclasses.replace(ends, state=now.state, configuration=now.configuration)
    copied._fitted = dataclasses.replace(copied._fitted, ends=ends)
    found = copied.verify()
    assert not found.passed
    assert found.identical is (case == "signature"), "bits are one verdict, signatures another"
    said = (*found.differences, *found.signatures.wrong)
    assert any(message in difference for difference in said)


def test_the_ends_of_a_chain_tell_what_is_missing() -> None:
    receipts = chain()
    check_chain([], state=hashed("state 0"), ends=ends_of([]))
    ends = ends_of(receipts)
    check_chain(receipts, state=hashed("state 4"), ends=ends)
    assert Ends.from_dict(json.loads(json.dumps(ends.to_dict()))) == ends
    with pytest.raises(VerificationError, match=r"4 receipts \(found 0\)"):
        check_chain([], ends=ends)
    with pytest.raises(VerificationError, match=r"4 receipts \(found 3\)"):
        check_chain(receipts[:-1], ends=ends)
    with pytest.raises(VerificationError, match="state that was fitted"):
        check_chain([], state=hashed("state 1"), ends=ends_of([]))
    changes: list[tuple[dict[str, Any], str]] = [
        ({"fitted": hashed("another")}, "state that was fitted"),
        ({"head": "0" * 64}, "not the one that was written"),
        ({"run": "grapheraser/other"}, "another run"),
        ({"log": ("0" * 64,)}, "the log does not hold"),
    ]
    for change, message in changes:
        with pytest.raises(VerificationError, match=message):
            check_chain(receipts, ends=dataclasses.replace(ends, **change))


@pytest.mark.parametrize(
    "change",
    [{"log": ["x"]}, {"log": []}, {"log": None}, {"receipts": "4"}, {"run": 3}, {"odd": 1}],
)
def test_ends_that_are_none_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(VerificationError):
        Ends.from_dict({**ends_of(chain()).to_dict(), **change})


@given(st.data())
def test_a_receipt_left_out_doubled_or_moved_is_noticed(data: st.DataObject) -> None:
    receipts = chain()
    at = data.draw(st.integers(0, 2))
    match data.draw(st.sampled_from(["left out", "doubled", "moved"])):
        case "left out":
            tampered = receipts[:at] + receipts[at + 1 :]
        case "doubled":
            tampered = receipts[: at + 1] + receipts[at:]
        case _:
            tampered = [*receipts]
            tampered[at], tampered[at + 1] = tampered[at + 1], tampered[at]
    with pytest.raises(VerificationError):
        check_chain(tampered)


def test_the_last_receipt_must_lead_to_the_state_at_hand() -> None:
    with pytest.raises(VerificationError, match="current state"):
        check_chain(chain(), state="another")
    with pytest.raises(VerificationError, match="current state"):
        check_chain(chain()[:-1], state=hashed("state 4"))


@pytest.fixture(scope="module")
def run() -> tuple[ge.GraphEraser, list[Receipt]]:
    """A run on a graph whose ids and features are easy to find in a text."""
    ids = 123_456_789_000 + np.arange(30)
    rng = np.random.default_rng(0)
    x = np.where(rng.random((30, 5)) < 0.5, 9876.5, 0.0)
    x[:, 0] = 4321.75
    edges = ids[np.stack([np.arange(29), np.arange(1, 30)])]
    y = rng.integers(2, size=30)
    graph = ge.Graph.from_arrays(x, edges, y, ids=ids, test=ids[25:], num_classes=2)
    eraser = ge.GraphEraser(num_shards=3, epochs=2, partition="hash").fit(graph)
    receipts = [
        eraser.unlearn(ge.Nodes(ids[[3, 26]])),
        eraser.unlearn([ge.Edges([tuple(ids[[10, 11]])]), ge.Features(ids[[12]])]),
        eraser.insert(int(ids[-1] + 7), [1.0] * 5, 1, ids[[5, 6]]),
    ]
    return eraser, receipts


def test_receipts_of_a_run_form_a_chain(run: tuple[ge.GraphEraser, list[Receipt]]) -> None:
    eraser, receipts = run
    assert list(eraser.receipts_) == receipts
    check_chain(receipts, state=digest_of(eraser._snapshot.document), ends=eraser._snapshot.ends)
    assert [receipt.action for receipt in receipts] == ["unlearn", "unlearn", "insert"]


def test_receipts_hold_no_ids_and_no_features(run: tuple[ge.GraphEraser, list[Receipt]]) -> None:
    for receipt in run[1]:
        text = receipt.payload.decode()
        assert "123456789" not in text
        assert "9876.5" not in text
        assert "4321.75" not in text


def test_a_receipt_says_what_was_done(run: tuple[ge.GraphEraser, list[Receipt]]) -> None:
    eraser, (first, second, third) = run
    ids = 123_456_789_000 + np.arange(30)
    asked = [{"forget": "node", "ids": [str(node)]} for node in ids[[3, 26]]]
    assert sorted((dict(part.about) for part in first.parts), key=str) == asked
    assert first.counts == {"nodes": 2, "edges": 0, "features": 0, "labels": 0}
    assert first.details.untrained == 1
    assert second.counts["edges"] == 1
    assert second.counts["features"] == 1
    assert third.counts["nodes"] == 1
    for receipt in (first, second, third):
        assert receipt.is_signed
        assert receipt.engine == eraser.engine_
        assert set(receipt.versions) >= {"python", "torch", "numpy"}
        assert receipt.timings["total"] >= receipt.timings["training"] >= 0
        for record in receipt.shards:
            assert record.before != record.after
    for record in third.shards:
        assert record.after == shard_digest(eraser.shards_[record.shard])


def test_the_statement_follows_from_what_the_cut_was_made_of(
    run: tuple[ge.GraphEraser, list[Receipt]], small: ge.Graph
) -> None:
    assert [receipt.statement for receipt in run[1]] == [EXACT] * 3
    eraser = ge.GraphEraser(num_shards=2, epochs=1, partition="random").fit(small)
    receipt = eraser.unlearn(ge.Nodes(small.ids[:1]))
    assert receipt.statement == EXACT_GIVEN_PARTITION
    assert "no features, edges or labels went into it" in receipt.exactness["reason"]
    by_feature = ge.GraphEraser(
        num_shards=2, epochs=1, partition=lambda graph, k, seed: graph.x.indptr[1:] % k
    ).fit(small)
    receipt = by_feature.unlearn(ge.Nodes(small.ids[:1]))
    assert receipt.statement == EXACT_GIVEN_PARTITION
    assert "edges, features, labels and nodes" in receipt.exactness["reason"]


def test_an_insertion_next_to_others_is_an_input_of_the_cut(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=2, epochs=1, partition="random").fit(small)
    receipt = eraser.insert(1000, [1.0] * small.num_features, 0, small.ids[:2])
    assert receipt.exactness["partition_inputs"] == ["edges", "nodes"]


def test_an_insertion_names_all_that_was_handed_in(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    row = [0.5] + [0.0] * (small.num_features - 1)
    parts = eraser.insert(1000, row, 1, small.ids[:2]).parts
    (part,) = (part for part in parts if part.about["add"] == "node")
    edges = [other for other in parts if other is not part]
    assert part.about == {
        "add": "node",
        "ids": ["1000"],
        "label": 1,
        "columns": [0],
        "values": [0.5],
    }
    ends = sorted(other.about["ids"] for other in edges)
    assert ends == [["1000", str(node)] for node in small.ids[:2]]
    assert all(other.about["add"] == "edge" for other in edges)
    part.check(None)
    for name, value in (("label", 0), ("ids", ["1001"]), ("values", [1.5])):
        with pytest.raises(VerificationError, match="does not answer this request"):
            dataclasses.replace(part, about={**part.about, name: value}).check(None)


CHECK = """
import sys
for name in ("torch", "torch_geometric", "numpy", "scipy", "numba"):
    sys.modules[name] = None
from grapheraser.receipts import Receipt, check_chain
receipts = [Receipt.from_json(line) for line in sys.stdin]
check_chain(receipts)
print(len(receipts), receipts[-1].statement)
"""


def test_receipts_can_be_checked_without_torch_or_numpy(
    run: tuple[ge.GraphEraser, list[Receipt]],
) -> None:
    lines = "\n".join(receipt.to_json() for receipt in run[1])
    source = str(Path(ge.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        input=lines,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": source},
        check=True,
    )
    assert done.stdout.split() == ["3", "exact"]
