"""One person, one receipt: each can be checked alone, and no forged one passes."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.canonical import canonical_json
from grapheraser.errors import VerificationError
from grapheraser.receipts import Part, Receipt, check_against

pytest.importorskip("cryptography", reason="needs the extra 'sign'")
from grapheraser.receipts.keys import PublicKey
from grapheraser.store.keys import current_signer
from tests.strategies import small_graph


@pytest.fixture(scope="module")
def key() -> PublicKey:
    signer = current_signer()
    assert signer is not None
    return PublicKey(signer.public)


@pytest.fixture(scope="module")
def eraser() -> ge.GraphEraser:
    return ge.GraphEraser(num_shards=3, epochs=2).fit(small_graph())


@pytest.fixture(scope="module")
def receipts(eraser: ge.GraphEraser) -> list[Receipt]:
    """Of a batch about six people, and of three more changes."""
    graph = eraser.graph_
    edge = next(
        pair for pair in graph.edges.tolist() if not set(pair) & set(graph.train_nodes[:4].tolist())
    )
    batch: list[Any] = [
        ge.Nodes(graph.train_nodes[:2]),
        ge.Nodes(graph.test_nodes[:1]),
        ge.Edges([edge]),
        ge.Features(graph.train_nodes[2:3]),
        ge.Labels(graph.train_nodes[3:4]),
    ]
    made = [eraser.unlearn(batch)]
    made += [eraser.unlearn(ge.Nodes([node])) for node in graph.train_nodes[5:7].tolist()]
    made.append(eraser.insert(1000, [1.0] * graph.num_features, 0, graph.ids[-2:]))
    return made


def test_a_batch_has_a_receipt_for_each_that_it_names(
    receipts: list[Receipt], key: PublicKey
) -> None:
    batch = receipts[0]
    kinds = sorted(str(part.about["forget"]) for part in batch.parts)
    assert kinds == ["edge", "features", "label", "node", "node", "node"]
    assert batch.requests == 6
    for part in batch.parts:
        part.check(key)
        part.check(key, part.checkpoint)
        read = Part.from_json(part.to_json() + "\n")
        assert read == part
        read.check(key)
        assert (part.opening is None) == (part.about["forget"] != "node")


def test_a_part_tells_nothing_of_the_others(receipts: list[Receipt]) -> None:
    parts = receipts[0].parts
    for part in parts:
        text = part.to_json()
        for other in parts:
            if other is not part:
                assert canonical_json(other.about) not in text
                assert other.nonce.hex() not in text
                if other.opening is not None:
                    assert other.opening.nonce.hex() not in text


def test_the_order_of_the_parts_is_that_of_their_hashes(receipts: list[Receipt]) -> None:
    """That of the ids would tell something about the others."""
    assert [part.place.index for part in receipts[0].parts] == list(range(6))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values in JSON, those within it first."""
    if isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[name], (*path, name))
    yield path


def changed(value: Any) -> Iterator[Any]:
    yield from (None, [], {}, -1, 2**70, "x", True, [[[]]])
    if isinstance(value, str):
        yield value[:-1]
        yield ("0" if value[:1] != "0" else "1") + value[1:]
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, list) and value:
        yield value[1:]
        yield value[::-1]


def test_no_change_of_any_value_passes_or_ends_in_a_raw_error(
    receipts: list[Receipt], key: PublicKey
) -> None:
    tried = 0
    for part in (receipts[1].parts[0], receipts[0].parts[0]):
        whole = part.to_dict()
        for path in leaves(whole):
            if path[:1] == ("envelope",) and len(path) > 3:
                continue
            at: Any = whole
            for name in path:
                at = at[name]
            for value in changed(at):
                forged: Any = copy.deepcopy(whole)
                if value == at and type(value) is type(at):
                    continue
                if not path:
                    forged = value
                else:
                    inside = forged
                    for name in path[:-1]:
                        inside = inside[name]
                    inside[path[-1]] = value
                with pytest.raises(VerificationError):
                    Part.from_json(canonical_json(forged)).check(key)
                tried += 1
    assert tried > 500


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"format":"x"}', "[" * 100_000])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(VerificationError):
        Part.from_json(text)


def test_another_spelling_is_refused(receipts: list[Receipt]) -> None:
    text = receipts[0].parts[0].to_json()
    for other in (json.dumps(json.loads(text)), text[:-1] + ',"format":"x"}', " " + text):
        with pytest.raises(VerificationError):
            Part.from_json(other)


def test_a_log_that_has_grown_still_holds_the_receipt(
    eraser: ge.GraphEraser, receipts: list[Receipt], key: PublicKey
) -> None:
    part, last = receipts[1].parts[0], receipts[-1].parts[0]
    with pytest.raises(VerificationError, match="a log of 4 receipts, the proof of one of 2"):
        part.check(key, last.checkpoint)
    grown = part.proved_in(eraser.receipts_, last.checkpoint)
    grown.check(key, last.checkpoint)
    for number, note in enumerate((receipt.parts[0].checkpoint for receipt in receipts), start=1):
        assert note is not None
        assert check_against(eraser.receipts_, note, key).size == number
    with pytest.raises(VerificationError, match="not in the log of this run"):
        part.proved_in(list(eraser.receipts_)[::-1], last.checkpoint)


def test_unsigned_receipts_say_so(small: ge.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHERASER_KEYS", "")
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    receipt = eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    (part,) = receipt.parts
    assert not receipt.is_signed
    assert part.checkpoint is None
    part.check(None)
    with pytest.raises(VerificationError, match="unsigned"):
        part.check(PublicKey(bytes(32)))
    found = eraser.verify()
    assert (found.passed, found.signatures.verdict) == (True, "unsigned")


def test_a_key_that_was_replaced_is_still_known(
    small: ge.Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from grapheraser.store.keys import KeyFolder

    monkeypatch.setenv("GRAPHERASER_KEYS", str(tmp_path / "keys"))
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    old = eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    KeyFolder().rotate()
    new = eraser.unlearn(ge.Nodes(small.train_nodes[1:2]))
    assert old.signatures[0].key != new.signatures[0].key
    found = eraser.verify()
    assert found.passed
    assert found.notes == ()
    both = (old.signatures[0].key, new.signatures[0].key)
    assert (found.signatures.verdict, found.signatures.keys) == ("verified", both)
    monkeypatch.setenv("GRAPHERASER_KEYS", str(tmp_path / "others"))
    found = eraser.verify()
    assert (found.passed, found.signatures.verdict) == (True, "not checked")


def test_a_key_that_can_not_be_opened_stops_a_request_before_anything_changes(
    small: ge.Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from grapheraser.errors import ParameterError
    from grapheraser.store.keys import KeyFolder

    monkeypatch.setenv("GRAPHERASER_KEYS", str(tmp_path / "keys"))
    KeyFolder(passphrase="open sesame").signing_key()
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    with pytest.raises(ParameterError, match="encrypted"):
        eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    assert eraser.graph_ == small
    assert len(eraser.receipts_) == 0
    monkeypatch.setenv("GRAPHERASER_KEY_PASSPHRASE", "open sesame")
    assert eraser.unlearn(ge.Nodes(small.train_nodes[:1])).is_signed


def test_a_forged_signature_is_noticed_by_the_run(
    eraser: ge.GraphEraser, receipts: list[Receipt]
) -> None:
    kept = list(eraser.receipts_)
    assert all(not receipt.parts and receipt.is_signed for receipt in kept)
    assert kept == receipts
    assert dataclasses.replace(kept[0], signatures=()) != kept[0]


def test_a_part_names_whom_it_is_about(small: ge.Graph, key: PublicKey) -> None:
    names = [f"user {node}" for node in small.ids.tolist()]
    edges = [
        [names[small.ids.tolist().index(end)] for end in pair] for pair in small.edges.tolist()
    ]
    graph = ge.Graph.from_arrays(
        small.x, np.array(edges).T, small.y, ids=names, each_edge_once=True, train=names[:30]
    )
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(graph)
    (part,) = eraser.unlearn(ge.Nodes(["user 3"])).parts
    assert part.about["names"] == ["user 3"]
    part.check(key)
    with pytest.raises(VerificationError):
        dataclasses.replace(part, about={**part.about, "names": ["user 4"]}).check(key)
    (added,) = eraser.update(
        ge.AddNodes(["user 99"], np.ones((1, small.num_features)), y=[0])
    ).parts
    assert added.about["names"] == ["user 99"]
    added.check(key)
