"""The proof: train from the remaining data alone, and compare every tensor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.environment import versions
from grapheraser.eraser.seals import document
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import fit_state
from grapheraser.errors import CorruptRunError, VerificationError
from grapheraser.graph.register import Register, RegisterPage
from grapheraser.partition.placing import partition_afresh
from grapheraser.progress import stage
from grapheraser.receipts import Receipt, check_chain, digest_of
from grapheraser.receipts.claim import exactness
from grapheraser.receipts.envelope import check_signed
from grapheraser.receipts.keys import PublicKey
from grapheraser.receipts.notes import Checkpoint
from grapheraser.receipts.statement import PAYLOAD
from grapheraser.reports.wording import plural
from grapheraser.store.keys import known_keys

# What the parts of the state's document are called.
_WORDS = {
    "shards": "weights of the shards",
    "seeds": "seeds of the shards",
    "described": "description",
    "nonce": "commitments",
}


@dataclass(frozen=True)
class Verification:
    """What a replay from the remaining data found.

    Attributes:
        identical: whether every tensor, and what the receipts say, is what it should be.
        tensors: how many tensors were compared.
        values: how many numbers that is.
        receipts: how many receipts were checked.
        differences: what is not as it should be, in words.
        notes: circumstances that weaken or explain the result.
        seconds: how long the replay took.
    """

    identical: bool
    tensors: int
    values: int
    receipts: int
    differences: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "differences": list(self.differences),
            "notes": list(self.notes),
        }


def verify(snapshot: Snapshot) -> Verification:
    """S(G, P, recorded seeds) afresh beside the state at hand; see `GraphEraser.verify`."""
    started = time.perf_counter()
    settings, state, receipts = snapshot.settings, snapshot.state, snapshot.receipts
    stage("checking the receipts")
    differences = [*wrong_parts(snapshot), *_wrong_receipts(snapshot)]
    if state.partition.data_free:
        stage("partitioning afresh")
        labels = partition_afresh(settings.partitioner, state.graph, state.partition)
        if not np.array_equal(labels, state.partition.labels):
            differences.append("partition: a fresh one gives other shards")
    fresh = fit_state(settings, state.graph, state.partition, state.seeds)
    stage("comparing bit for bit")
    found = state.tensors()
    differences += _compare(found, fresh.tensors())
    return Verification(
        identical=not differences,
        tensors=len(found),
        values=sum(array.size for array in found.values()),
        receipts=len(receipts),
        differences=tuple(differences),
        notes=tuple(_notes(snapshot)),
        seconds=time.perf_counter() - started,
    )


def _compare(found: dict[str, NDArray[Any]], expected: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    """Every difference between two sets of named tensors; equal means equal bytes."""
    differences = [f"{name}: missing" for name in expected.keys() - found.keys()]
    differences += [f"{name}: should not be there" for name in found.keys() - expected.keys()]
    for name in found.keys() & expected.keys():
        a, b = found[name], expected[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            differences.append(
                f"{name}: {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
            )
        elif a.tobytes() != b.tobytes():
            differs = int(np.count_nonzero(a != b))
            differences.append(f"{name}: {differs} of {a.size} values differ")
    return tuple(sorted(differences))


def wrong_parts(snapshot: Snapshot) -> Iterator[str]:
    """The parts of the state's document that are not what the state at hand consists of."""
    graph = snapshot.state.graph
    # A copy has nothing cached: its fingerprint is worked out from the data.
    if replace(graph).fingerprint != graph.fingerprint:
        yield "graph: its fingerprint does not follow from its data"
    register = snapshot.seals.register
    pages = [RegisterPage(page.entries, page.digits) for page in register.pages]
    if Register.restored(register.key, pages).root != register.root:
        yield "register: its root does not follow from its slots"
    if not register.is_of(graph.ids):
        yield "register: not the nodes of the graph"
    ensemble = snapshot.state.ensemble
    # So it is with shard models, whose pages remember digests.
    state = replace(snapshot.state, ensemble=replace(ensemble, shards=dict(ensemble.shards)))
    expected = document(state, snapshot.configuration, snapshot.seals)
    found = snapshot.document
    for name in sorted({*expected, *found}):
        if found.get(name) != expected.get(name):
            yield f"{_WORDS.get(name, name)}: not what the last change left"


def _wrong_receipts(snapshot: Snapshot) -> Iterator[str]:
    """Whatever in the receipts contradicts the run, in words."""
    receipts, ends = snapshot.receipts, snapshot.ends
    if ends.configuration != digest_of(snapshot.configuration):
        yield "configuration: not the settings that the run was fitted with"
    state = digest_of(dict(snapshot.document))
    if ends.state != state:
        yield "receipts: the run's current state is not the one that they led to"
    try:
        check_chain(receipts, state=state, ends=ends)
    except (VerificationError, CorruptRunError) as error:
        yield f"receipts: {error.message}" if isinstance(error, CorruptRunError) else error.message
        return  # what a receipt says that does not belong here is of no interest
    if receipts:
        yield from _wrong_circumstances(snapshot, receipts[-1])
    yield from _wrong_signatures(snapshot)


def _wrong_circumstances(snapshot: Snapshot, last: Receipt) -> Iterator[str]:
    """What the last receipt says of the run besides its state, where that is not so."""
    settings, partition = snapshot.settings, snapshot.state.partition
    said = {
        "register": (last.register_after, snapshot.seals.register.root),
        "configuration": (last.configuration, digest_of(snapshot.configuration)),
        "seed": (last.seed, str(settings.seed)),
        "engine": (last.engine, settings.engine.name),
        "exactness": (last.exactness, exactness(partition.method, partition.inputs)),
        "aggregation": (
            {name: last.aggregation.get(name) for name in settings.aggregation_names},
            settings.aggregation_names,
        ),
    }
    for name, (found, expected) in said.items():
        if found != expected:
            yield f"receipts: the last one has another {name} than the run"


def _wrong_signatures(snapshot: Snapshot) -> Iterator[str]:
    """Signatures of keys that are here, where they do not fit."""
    keys = {key.id: key for key in known_keys()}
    for receipt in snapshot.receipts:
        for signature in receipt.signatures:
            if (key := keys.get(signature.key)) is not None:
                try:
                    check_signed(PAYLOAD, receipt.payload, [signature], key)
                except VerificationError:
                    yield f"receipts: the signature of receipt {receipt.sequence} does not fit"
    note = snapshot.ends.checkpoint
    if note is not None and keys and not any(_is_signed(note, key) for key in keys.values()):
        yield "receipts: the checkpoint is not signed by a key of this machine"


def _is_signed(note: str, key: PublicKey) -> bool:
    try:
        Checkpoint.opened(note, key)
    except VerificationError:
        return False
    return True


def _notes(snapshot: Snapshot) -> Iterator[str]:
    if not snapshot.receipts:
        return
    if snapshot.receipts[-1].versions != versions(snapshot.settings.device):
        yield "the last receipt was written under other library versions"
    try:
        receipts = list(snapshot.receipts)
    except CorruptRunError:
        return  # one of the differences says so
    keys = {key.id for key in known_keys()}
    unsigned = sum(not receipt.is_signed for receipt in receipts)
    if unsigned:
        yield f"{plural(unsigned, 'receipt')} unsigned"
    signed = (receipt.signatures for receipt in receipts if receipt.is_signed)
    unknown = sum(not keys & {signature.key for signature in each} for each in signed)
    if unknown:
        yield f"{plural(unknown, 'receipt')} signed by a key that is not on this machine"
