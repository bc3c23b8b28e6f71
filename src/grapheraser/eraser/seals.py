"""Seals: nonces that hide a state in its receipts, destroyed when the next state replaces it.

The nonce hides the digests of the graph, the weights and the aggregator, the register the ids. Both
come from the system's randomness and are no part of the fitted state: training is deterministic, so
a bare digest of old weights would confirm a guess about what was forgotten.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grapheraser.arrays import Ints
from grapheraser.eraser.state import State
from grapheraser.graph.proof.register import Register
from grapheraser.receipts import digest_of
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
