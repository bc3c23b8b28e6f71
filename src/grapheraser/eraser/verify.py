"""The proof: train again from the remaining data alone, and compare."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation import WithExpert
from grapheraser.environment import versions
from grapheraser.eraser.comparison import Verification, compare
from grapheraser.eraser.snapshot import Fitted
from grapheraser.eraser.state import fit_state
from grapheraser.errors import VerificationError
from grapheraser.partition.placing import repartition
from grapheraser.receipts import Receipt, check_chain, digest_of, last_records
from grapheraser.receipts.claim import exactness
from grapheraser.training import ShardWeights, digest_tensors


def replay(fitted: Fitted) -> Verification:
    """S(G, P, seed) afresh beside the state at hand; see `GraphEraser.verify`."""
    started = time.perf_counter()
    settings, state, receipts = fitted.settings, fitted.state, fitted.receipts
    differences = [*_wrong_receipts(fitted)]
    if state.partition.data_free:
        labels = repartition(settings.partitioner, state.graph, state.partition)
        if not np.array_equal(labels, state.partition.labels):
            differences.append("partition: a fresh cut gives other shards")
    fresh = fit_state(settings, state.graph, state.partition)
    found = state.tensors()
    differences += compare(found, fresh.tensors())
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


def _wrong_receipts(fitted: Fitted) -> Iterator[str]:
    """Whatever in the receipts contradicts the run, in words."""
    state, receipts = fitted.state, fitted.receipts
    graph = state.graph
    # A copy has nothing cached: its fingerprint is worked out from the data.
    if replace(graph).fingerprint != graph.fingerprint:
        yield "graph: its fingerprint does not follow from its data"
    if fitted.ends is None:
        yield "receipts: the run does not say what it was fitted on, nor how many there are"
    elif fitted.ends.configuration != digest_of(fitted.configuration):
        yield "configuration: not the settings that the run was fitted with"
    try:
        check_chain(receipts, graph=graph.fingerprint, ends=fitted.ends)
    except VerificationError as error:
        yield error.message
        return  # what a receipt says that does not belong here is of no interest
    for shard in stale_shards(receipts, state.shards):
        yield f"receipts: shard {shard} is not what its last receipt left"
    if stale_aggregator(receipts, state.aggregator.tensors):
        yield "receipts: what the aggregator holds is not what the last receipt left"
    for shard, record in sorted(last_records(receipts).items()):
        size = int(state.partition.sizes[shard]) if shard < state.partition.num_shards else 0
        if (record.nodes, record.seed) != (size, fitted.settings.shard_seed(shard)):
            yield f"receipts: the last record of shard {shard} is of other nodes or another seed"
    if receipts:
        yield from _wrong_circumstances(fitted, receipts[-1])


def _wrong_circumstances(fitted: Fitted, last: Receipt) -> Iterator[str]:
    """What the last receipt says of the run besides its weights, where that is not so."""
    settings = fitted.settings
    aggregator, partition = settings.aggregator, fitted.state.partition
    said = {
        "configuration": (last.configuration, digest_of(fitted.configuration)),
        "engine": (last.engine, settings.engine.name),
        "exactness": (last.exactness, exactness(partition.method, partition.inputs)),
        "aggregation": (
            (last.aggregation.get("name"), last.aggregation.get("global_expert")),
            (aggregator.name, isinstance(aggregator, WithExpert)),
        ),
    }
    for name, (found, expected) in said.items():
        if found != expected:
            yield f"receipts: the last one has another {name} than the run"
