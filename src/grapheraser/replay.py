"""The proof: train again from the remaining data alone, and compare."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grapheraser.errors import VerificationError
from grapheraser.partition import resolve_partitioner
from grapheraser.receipt import Receipt, check_chain
from grapheraser.state import Settings, State, fit_state
from grapheraser.verification import Verification, compare
from grapheraser.versions import versions


def replay(
    settings: Settings, state: State, receipts: Sequence[Receipt], *, device: str
) -> Verification:
    """S(G, P, seed) afresh beside the state at hand; see `GraphEraser.verify`."""
    started = time.perf_counter()
    graph = state.graph
    differences: list[str] = []
    # A copy has nothing cached: its fingerprint is worked out from the data.
    if replace(graph).fingerprint != graph.fingerprint:
        differences.append("graph: its fingerprint does not follow from its data")
    try:
        check_chain(receipts, graph=graph.fingerprint)
    except VerificationError as error:
        differences.append(error.message)
    if state.partition.data_free and not _cut_again(state):
        differences.append("partition: a fresh cut gives other shards")
    fresh = fit_state(settings, graph, state.partition)
    found = state.tensors()
    differences += compare(found, fresh.tensors())
    notes: tuple[str, ...] = ()
    if receipts and receipts[-1].versions != versions(device):
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


def _cut_again(state: State) -> bool:
    """Whether a data-free partition made afresh gives the same shards."""
    partition = state.partition
    method = resolve_partitioner(partition.method)
    assignment = method(
        state.graph.training_graph,
        partition.num_shards,
        capacity=partition.capacity,
        seed=partition.seed,
    )
    return np.array_equal(assignment.labels, partition.labels)
