"""Ten forgeries of receipts, logs and runs; docs/receipts.md says what each is noticed by."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import VerificationError
from grapheraser.receipts import Part, check_against, check_chain
from grapheraser.receipts.checking import check_published
from grapheraser.receipts.keys import PublicKey
from grapheraser.store.keys import KeyFolder
from tests.strategies import small_graph

pytest.importorskip("cryptography")


def refused(check: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises(VerificationError):
        check(*arguments)


def test_each_is_refused_with_a_reason(tmp_path: Path) -> None:
    folder, graph = tmp_path, small_graph()
    ada, bob = map(int, graph.train_nodes[:2])
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(graph)
    mine, _ = eraser.unlearn([ge.Nodes([ada]), ge.Nodes([bob])]).parts
    signer = KeyFolder().signing_key()  # the operator's own: some of these take a lying operator
    key = PublicKey(signer.public)
    carols = eraser.unlearn(ge.Nodes(graph.train_nodes[2:3])).parts[0]  # a second change
    eraser.save(folder / "run")
    receipts, checkpoint = list(eraser.receipts_), str(carols.checkpoint)
    # Another claim under the old signature.
    claim = {**mine.receipt.exactness, "reason": "Nobody else ever saw it."}
    refused(replace(mine, receipt=replace(mine.receipt, exactness=claim)).check, key)

    # The same receipt, signed by somebody else.
    stranger = KeyFolder(folder / "strangers").signing_key()
    signed = replace(mine.receipt, signatures=()).signed_by(stranger, stranger.id)
    refused(replace(mine, receipt=signed).check, key)

    # Carol is given the receipt of the change before, which was about others.
    replayed = replace(mine, about=carols.about, opening=carols.opening)
    refused(replayed.check, key)

    # The last receipt is dropped, or two are exchanged.
    check_against(receipts, checkpoint, key)
    refused(check_against, receipts[:1], checkpoint, key)
    refused(check_against, receipts[::-1], checkpoint, key)

    # The operator writes the whole log anew, with an earlier date: a sound chain, but another log.
    early = replace(receipts[0], completed_at="2020-01-01T00:00:00+00:00", signatures=())
    early = early.signed_by(signer, signer.id)
    late = replace(receipts[1], previous=early.digest, signatures=()).signed_by(signer, signer.id)
    check_chain([early, late])
    refused(check_against, [early, late], checkpoint, key)

    # A slot that is still full is said to be empty.
    assert mine.opening is not None
    full = mine.opening.before
    empty = replace(full, entries=tuple(e for e in full.entries if e[0] != mine.opening.slot))
    refused(replace(mine, opening=replace(mine.opening, after=empty)).check, key)

    # The published weights are others than those of the last receipt.
    published = shutil.copytree(folder / "run", folder / "published")
    check_published(carols.receipt, lambda name: (published / name).read_bytes())
    text = (published / "run.json").read_text()
    index = json.loads(text)["shards"]["file"]
    rows = np.load(published / index)
    weights = (
        published / f"shards/{rows['weights'][0].tobytes().hex()[:20]}.safetensors"
    ).read_bytes()
    weights = weights[:-1] + b"?"
    other = hashlib.sha256(weights)
    (published / f"shards/{other.hexdigest()[:20]}.safetensors").write_bytes(weights)
    rows["weights"][0] = np.frombuffer(other.digest(), dtype="V32")[0]
    old = hashlib.sha256((published / index).read_bytes()).hexdigest()
    np.save(published / index, rows)
    new = hashlib.sha256((published / index).read_bytes()).hexdigest()
    (published / "run.json").write_text(text.replace(old, new))
    refused(
        check_published,
        carols.receipt,
        lambda name: (published / name).read_bytes(),
    )

    # The receipt of another run of the same operator.
    another = ge.GraphEraser(num_shards=2, epochs=1).fit(graph).unlearn(ge.Nodes([ada])).parts[0]
    refused(another.check, key, checkpoint)

    # A file that lost its end.
    refused(Part.from_json, mine.to_json()[:-100])
