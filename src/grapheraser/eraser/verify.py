"""The proof: train from the remaining data alone, and compare every tensor."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.environment import versions
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import fit_state, seed_of
from grapheraser.errors import CorruptRunError, VerificationError
from grapheraser.partition.placing import partition_afresh
from grapheraser.receipts import Receipt, check_chain, digest_of, last_records
from grapheraser.receipts.claim import exactness
from grapheraser.training import ShardWeights, digest_tensors


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
    differences = [*_wrong_receipts(snapshot)]
    if state.partition.data_free:
        labels = partition_afresh(settings.partitioner, state.graph, state.partition)
        if not np.array_equal(labels, state.partition.labels):
            differences.append("partition: a fresh one gives other shards")
    fresh = fit_state(settings, state.graph, state.partition, state.seeds)
    found = state.tensors()
    differences += _compare(found, fresh.tensors())
    notes: tuple[str, ...] = ()
    if receipts and receipts[-1].versions != versions(settings.device):
        notes = ("the last receipt was written under other library versions",)
    return Verification(
        identical=not differences,
        tensors=len(found),
        values=sum(array.size for array in found.values()),
        receipts=len(receipts),
        differences=tuple(differences),
        notes=notes,
        seconds=time.perf_counter() - started,
    )


def stale_shards(
    receipts: Sequence[Receipt], shards: Mapping[int, ShardWeights]
) -> tuple[int, ...]:
    """The shards that are not what their last receipt left, ascending."""
    found = {shard: weights.digest for shard, weights in shards.items()}
    return tuple(
        shard
        for shard, record in sorted(last_records(receipts).items())
        if record.after != found.get(shard)
    )


def stale_aggregator(receipts: Sequence[Receipt], tensors: Mapping[str, NDArray[Any]]) -> bool:
    """Whether what the aggregator holds is not what the last receipt left."""
    return bool(receipts) and receipts[-1].aggregation.get("after") != digest_tensors(tensors)


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


def _wrong_receipts(snapshot: Snapshot) -> Iterator[str]:
    """Whatever in the receipts contradicts the run, in words."""
    state, receipts = snapshot.state, snapshot.receipts
    graph = state.graph
    # A copy has nothing cached: its fingerprint is worked out from the data.
    if replace(graph).fingerprint != graph.fingerprint:
        yield "graph: its fingerprint does not follow from its data"
    if snapshot.ends is None:
        yield "receipts: the run does not say what it was fitted on, nor how many there are"
    elif snapshot.ends.configuration != digest_of(snapshot.configuration):
        yield "configuration: not the settings that the run was fitted with"
    try:
        check_chain(receipts, graph=graph.fingerprint, ends=snapshot.ends)
    except (VerificationError, CorruptRunError) as error:
        yield f"receipts: {error.message}" if isinstance(error, CorruptRunError) else error.message
        return  # what a receipt says that does not belong here is of no interest
    for shard in stale_shards(receipts, state.shards):
        yield f"receipts: shard {shard} is not what its last receipt left"
    if stale_aggregator(receipts, state.aggregator.tensors):
        yield "receipts: what the aggregator holds is not what the last receipt left"
    for shard, record in sorted(last_records(receipts).items()):
        size = int(state.partition.sizes[shard]) if shard < state.partition.num_shards else 0
        if (record.nodes, record.seed) != (size, seed_of(snapshot.settings, state.seeds, shard)):
            yield f"receipts: the last record of shard {shard} is of other nodes or another seed"
    if receipts:
        yield from _wrong_circumstances(snapshot, receipts[-1])


def _wrong_circumstances(snapshot: Snapshot, last: Receipt) -> Iterator[str]:
    """What the last receipt says of the run besides its weights, where that is not so."""
    settings = snapshot.settings
    partition = snapshot.state.partition
    said = {
        "configuration": (last.configuration, digest_of(snapshot.configuration)),
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
