"""Randomness that is derived, never drawn from a shared stream.

Every random number in the package is a function of (seed, stage, shard id, ...). Nothing depends
on a global generator or on how many shards ran before, so removing one node or one shard leaves
the random numbers of all others as they are. The one exception is `fresh_seed`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The constants of splitmix64.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_A = np.uint64(0xBF58476D1CE4E5B9)
MIX_B = np.uint64(0x94D049BB133111EB)


@lru_cache(maxsize=1024, typed=True)
def derive(seed: int, *path: str | int) -> int:
    """A 64-bit seed for one place in the computation, e.g. ``derive(0, "train", 7)``."""
    text = json.dumps([int(seed), *path], separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def fresh_seed() -> int:
    """A seed from the system's randomness, which nothing else tells; small enough for any JSON.

    Only `unlearn(refresh=...)` asks for one, and the run records it.
    """
    return secrets.randbits(52)


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """A numpy generator of its own for one place in the computation."""
    return np.random.Generator(np.random.PCG64(derive(seed, *path)))


def keyed_hash(ids: NDArray[np.integer], key: int) -> NDArray[np.uint64]:
    """A 64-bit hash of every id under a key (splitmix64); each depends on its own id alone."""
    with np.errstate(over="ignore"):
        z = np.asarray(ids).astype(np.uint64) * GOLDEN + np.uint64(key)
        # Two rounds, or consecutive ids under related keys would show a pattern.
        for _ in range(2):
            z = mixed(z) + GOLDEN
    return z


def paired_hash(a: Any, b: NDArray[np.integer]) -> NDArray[np.uint64]:
    """A hash of every number of b under the key, or keys, a: `kernels.hashing.paired` of arrays."""
    with np.errstate(over="ignore"):
        return mixed(a + np.asarray(b).astype(np.uint64) * GOLDEN)


def mixed(z: Any) -> Any:
    """One round of splitmix64's finaliser."""
    z = (z ^ (z >> np.uint64(30))) * MIX_A
    z = (z ^ (z >> np.uint64(27))) * MIX_B
    return z ^ (z >> np.uint64(31))
