"""How much a receipt may claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grapheraser.receipts import EXACT, EXACT_GIVEN_PARTITION

_SAME_STATE = (
    "The model is, bit for bit on the same device and library versions, what training on the "
    "remaining data alone gives"
)


def exactness(method: str, inputs: Iterable[str]) -> dict[str, Any]:
    """The statement that holds under a partition, with its reason in words.

    Args:
        method: name of the partitioner.
        inputs: which of the data the partition was computed from.
    """
    inputs = sorted(inputs)
    if not inputs:
        statement = EXACT
        reason = f"{_SAME_STATE}, the partition included: it follows from node ids and a key."
    elif inputs == ["nodes"]:
        statement = EXACT_GIVEN_PARTITION
        reason = (
            f"{_SAME_STATE} given the same partition. The partition knew which nodes existed; no "
            "features, edges or labels went into it."
        )
    else:
        statement = EXACT_GIVEN_PARTITION
        reason = (
            f"{_SAME_STATE} given the same partition, which was computed from "
            f"{_listed(inputs)}, those of the forgotten data included."
        )
    return {
        "statement": statement,
        "partition": method,
        "partition_inputs": inputs,
        "reason": reason,
    }


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
