"""A snapshot: one published state of an eraser, with its settings and receipts, as one value."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from grapheraser.arrays import Ints
from grapheraser.eraser.settings import Settings, made_with
from grapheraser.eraser.state import State
from grapheraser.eraser.task import Task
from grapheraser.graph.proof.register import Register
from grapheraser.receipts import Ends, Receipt, Receipts, digest_of
from grapheraser.store import aggregator_digest, shards_digest
from grapheraser.store.graphs import schema_of
from grapheraser.store.writing import partition_digest

_NONCE_SIZE = 32
_FORMAT = "grapheraser-state-2"
NO_NODES: Ints = np.zeros(0, dtype=np.int64)


def name_of_run() -> str:
    """A name for the log of a new run."""
    return f"grapheraser/{secrets.token_hex(16)}"


@dataclass(frozen=True, eq=False)
class Seals:
    """Nonces and register of one state."""

    register: Register  # who is in the run
    nonce: bytes  # of the document of the state
    versions: dict[str, str]  # of what made the state; see `made_with`

    @classmethod
    def fresh(cls, nodes: Ints, versions: dict[str, str]) -> Seals:
        """For a run that begins its log just now."""
        return cls(Register.of(nodes), _nonce(), versions)

    def after(self, gone: Ints, new: Ints, versions: dict[str, str]) -> Seals:
        """For the state after a change; the nonces of what has gone are kept nowhere."""
        register = self.register.changed(gone, new)
        return replace(self, register=register, nonce=_nonce(), versions=versions)


def document(state: State, configuration: dict[str, Any], seals: Seals) -> dict[str, Any]:
    """Return all that a state consists of, by digests; receipts name the digest of this document.

    It is kept in the manifest for as long as the state is current: whoever has the run can check
    the files against the receipt, and once its nonce is gone nobody can.
    """
    graph, partition = state.graph, state.partition
    return {
        "format": _FORMAT,
        "nonce": seals.nonce.hex(),
        "graph": graph.fingerprint,
        "register": seals.register.root,
        "configuration": digest_of(configuration),
        "aggregator": aggregator_digest(state.aggregator.tensors),
        "shards": shards_digest(state.shards),
        "seeds": digest_of({str(shard): str(seed) for shard, seed in state.seeds.items()}),
        "described": {
            **schema_of(graph),
            "named": graph.named,
            "context": graph.context,
            "partition": partition.method,
            "num_shards": partition.num_shards,
            "capacity": partition.capacity,
            "inputs": sorted(partition.inputs),
            "seed": str(partition.seed),
            # One that is data-free follows from ids and a key.
            **({} if partition.data_free else {"assignment": partition_digest(partition)}),
        },
        "versions": seals.versions,
    }


def _nonce() -> bytes:
    return secrets.token_bytes(_NONCE_SIZE)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One published state, with everything that a fit or a request leaves behind.

    An eraser holds one and replaces it in one step: a caller that reads it once sees one state.
    """

    task: Task  # what the run is about
    arguments: Mapping[str, Any]  # those of the fit, by name
    settings: Settings  # the same, resolved
    state: State  # what was trained
    configuration: dict[str, Any]  # the settings as plain JSON
    receipts: Sequence[Receipt]  # one per change since the fit, oldest first
    ends: Ends  # where the receipts begin and end, and the log of them
    seals: Seals  # what hides this state in the receipts
    document: Mapping[str, Any]  # all that this state consists of; see `seals.document`
    # The manifest of a run that was read and not compared with its last receipt yet; see
    # `verify.check_loaded`.
    loaded: Mapping[str, Any] | None = None

    @classmethod
    def first(
        cls,
        task: Task,
        arguments: Mapping[str, Any],
        settings: Settings,
        state: State,
        configuration: dict[str, Any],
        made: dict[str, str] | None = None,
    ) -> Self:
        """Return the snapshot of a fit, with no receipts yet; ``made``: with what, if elsewhere."""
        # Digested now, so that the first request does not wait for it.
        seals = Seals.fresh(state.graph.ids, made_with(settings) if made is None else made)
        described = document(state, configuration, seals)
        digest = digest_of(described)
        ends = Ends(name_of_run(), digest, digest_of(configuration), digest)
        kept = (configuration, Receipts(), ends, seals, described)
        return cls(task, arguments, settings, state, *kept)

    def redacted(self) -> Self:
        """Return the snapshot without what only the caller of the last change is told."""
        return replace(self, receipts=Receipts.of(self.receipts).redacted())
