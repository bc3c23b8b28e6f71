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
from grapheraser.graph import request_digest
from grapheraser.receipts import (
    EXACT,
    EXACT_GIVEN_PARTITION,
    Ends,
    Receipt,
    ShardRecord,
    canonical_json,
    check_chain,
    digest_of,
)


def example(sequence: int, previous: str | None) -> Receipt:
    return Receipt(
        action="unlearn",
        sequence=sequence,
        previous=previous,
        request=f"{sequence:064x}",
        counts={"nodes": 1, "edges": 0, "features": 0, "untrained": 0},
        graph_before=f"graph {sequence - 1}",
        graph_after=f"graph {sequence}",
        shards=(ShardRecord(shard=3, seed=7, nodes=10, before="old", after="new"),),
        aggregation={"name": "mean", "before": "a", "after": "a"},
        configuration="configured",
        engine="cpu",
        device="cpu",
        versions={"torch": "2.13.0"},
        exactness={"statement": EXACT, "partition": "hash", "partition_inputs": []},
        timings={"total": 0.25},
        completed_at="2026-01-01T00:00:00+00:00",
    )


def chain(length: int = 4) -> list[Receipt]:
    receipts: list[Receipt] = []
    for number in range(1, length + 1):
        receipts.append(example(number, receipts[-1].digest if receipts else None))
    return receipts


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: json.dumps(json.loads(text), indent=4),
        lambda text: '{"action":"insert",' + text[1:],
        lambda text: text[:-1] + ',"action":"unlearn"}',
        lambda text: text.replace("unlearn", "\\u0075nlearn"),
        lambda text: text.replace("0.25", "0.250"),
        lambda text: " " + text,
    ],
)
def test_only_one_spelling_is_a_receipt(spell: Callable[[str], str]) -> None:
    with pytest.raises(VerificationError, match="canonically"):
        Receipt.from_json(spell(example(1, None).to_json()))


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


def test_missing_and_unknown_fields_are_refused() -> None:
    fields = chain(1)[0].to_dict()
    with pytest.raises(VerificationError):
        Receipt.from_json(json.dumps({**fields, "extra": 1}))
    del fields["request"]
    with pytest.raises(VerificationError):
        Receipt.from_json(json.dumps(fields))


def test_a_chain_that_holds_is_accepted() -> None:
    receipts = chain()
    check_chain(receipts)
    check_chain(receipts, graph="graph 4")
    check_chain([])


FIELDS = [field.name for field in dataclasses.fields(Receipt)]


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
            if value and isinstance(value[0], ShardRecord):
                return (dataclasses.replace(value[0], after="forged"), *value[1:])
            return [*value, "x"]
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
    "aggregation": ({"aggregation": {"name": "mean", "after": "0" * 64}}, "another aggregation"),
    "aggregator": ({"aggregation": {"after": "0" * 64}}, "what the aggregator holds"),
    "weights": ({"shards": {"after": "0" * 64}}, "is not what its last receipt left"),
    "nodes": ({"shards": {"nodes": 3000}}, "of other nodes or another seed"),
    "seed": ({"shards": {"seed": 1}}, "of other nodes or another seed"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_last_receipt_forged_with_its_digest_still_has_to_fit_the_state(
    run: tuple[ge.GraphEraser, list[Receipt]], case: str
) -> None:
    eraser, (*_, last) = run
    changes, message = FORGED[case]
    forged = last
    for field, values in changes.items():
        if field == "shards":
            shards = tuple(dataclasses.replace(record, **values) for record in last.shards)
            forged = dataclasses.replace(forged, shards=shards)
        else:
            old = getattr(last, field)
            new: Any = {**old, **values} if isinstance(values, dict) else values
            forged = dataclasses.replace(forged, **{field: new})
    copied = with_last(eraser, forged)
    ends = dataclasses.replace(eraser._fitted.ends, head=forged.digest)  # type: ignore[type-var]
    copied._fitted = dataclasses.replace(copied._fitted, ends=ends)
    found = copied.verify()
    assert not found.identical
    assert any(message in difference for difference in found.differences)


def test_the_ends_of_a_chain_tell_what_is_missing() -> None:
    receipts = chain()
    ends = Ends("graph 0", "settings")
    check_chain([], graph="graph 0", ends=ends)
    for receipt in receipts:
        ends = ends.then(receipt)
    check_chain(receipts, graph="graph 4", ends=ends)
    with pytest.raises(VerificationError, match=r"4 receipts \(found 0\)"):
        check_chain([], ends=ends)
    with pytest.raises(VerificationError, match=r"4 receipts \(found 3\)"):
        check_chain(receipts[:-1], ends=ends)
    with pytest.raises(VerificationError, match="graph that was fitted"):
        check_chain([], graph="graph 1", ends=Ends("graph 0", "settings"))
    with pytest.raises(VerificationError, match="graph that was fitted"):
        check_chain(receipts, ends=dataclasses.replace(ends, fitted="another"))


def test_fields_of_a_later_format_leave_the_digests_of_stored_receipts_alone() -> None:
    @dataclasses.dataclass(frozen=True)
    class Later(Receipt):
        signature: str | None = None

    stored = chain(1)[0]
    read = Later.from_json(stored.to_json())
    assert isinstance(read, Later)
    assert read.digest == stored.digest
    assert dataclasses.replace(read, signature="x").to_json() == stored.to_json()


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


def test_the_last_receipt_must_lead_to_the_graph_at_hand() -> None:
    with pytest.raises(VerificationError, match="current graph"):
        check_chain(chain(), graph="another")
    with pytest.raises(VerificationError, match="current graph"):
        check_chain(chain()[:-1], graph="graph 4")


@pytest.fixture(scope="module")
def run() -> tuple[ge.GraphEraser, list[Receipt]]:
    """A run on a graph whose ids and features are easy to find in a text."""
    ids = 123_456_789_000 + np.arange(30)
    rng = np.random.default_rng(0)
    x = np.where(rng.random((30, 5)) < 0.5, 9876.5, 0.0)
    x[:, 0] = 4321.75
    edges = ids[np.stack([np.arange(29), np.arange(1, 30)])]
    graph = ge.Graph.from_arrays(x, edges, rng.integers(2, size=30), ids=ids, test=ids[25:])
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
    check_chain(receipts, graph=eraser.graph_.fingerprint)
    assert [receipt.action for receipt in receipts] == ["unlearn", "unlearn", "insert"]


def test_receipts_hold_no_ids_and_no_features(run: tuple[ge.GraphEraser, list[Receipt]]) -> None:
    for receipt in run[1]:
        text = receipt.to_json()
        assert "123456789" not in text
        assert "9876.5" not in text
        assert "4321.75" not in text


def test_a_receipt_says_what_was_done(run: tuple[ge.GraphEraser, list[Receipt]]) -> None:
    eraser, (first, second, third) = run
    ids = 123_456_789_000 + np.arange(30)
    assert first.request == request_digest([ge.Nodes(ids[[3, 26]])])
    none = {"edges": 0, "features": 0, "labels": 0, "context": 0}
    assert first.counts == {"nodes": 2, **none, "untrained": 1}
    assert second.counts["edges"] == 1
    assert second.counts["features"] == 1
    assert third.counts["nodes"] == 1
    for receipt in (first, second, third):
        assert len(receipt.graph_before) == len(receipt.graph_after) == 64
        assert receipt.engine == eraser.engine_
        assert set(receipt.versions) >= {"python", "torch", "numpy"}
        assert receipt.timings["total"] >= receipt.timings["training"] >= 0
        for record in receipt.shards:
            assert record.before != record.after
    for record in third.shards:
        assert record.after == eraser.shards_[record.shard].digest


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


def test_the_digest_of_an_insertion_covers_all_that_was_handed_in(small: ge.Graph) -> None:
    def digest(**changes: Any) -> str:
        eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
        row = [0.5] + [0.0] * (small.num_features - 1)
        asked = {"features": row, "label": 0, "neighbours": small.ids[:2], **changes}
        return eraser.insert(1000, **asked).request

    plain = digest()
    node = {"id": 1000, "label": 0, "columns": [0], "values": [0.5]}
    edges = [[1000, other] for other in small.ids[:2].tolist()]
    assert plain == digest_of({"add_nodes": [node], "add_edges": edges})
    others: list[dict[str, Any]] = [
        {"label": 1},
        {"neighbours": small.ids[:1]},
        {"features": [1.5] + [0.0] * (small.num_features - 1)},
        {"features": [0.0] * (small.num_features - 1) + [0.5]},
    ]
    assert len({plain, *(digest(**changes) for changes in others)}) == 5


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
