"""Dropout's numbers: the layers that have noise of their own, and when a unit is dropped."""

from __future__ import annotations

from typing import NamedTuple

from grapheraser.models import ModelSpec

INPUT, HIDDEN_1, HIDDEN_2, ATTENTION_1, ATTENTION_2 = range(5)


class Limits(NamedTuple):
    """A unit is dropped when its 32-bit hash is below this."""

    hidden: int
    features: int
    attention: int


def limits_of(spec: ModelSpec) -> Limits:
    """The limits that give the probabilities of a spec."""
    shares = (spec.dropout, spec.input_dropout, spec.attention_dropout)
    return Limits(*(round(share * 2**32) for share in shares))
