"""Measure how well scores tell two groups apart, with intervals; and how alike partitions are.

An attack gives every candidate a score, high where it believes "was there". Everything here is a
function of such scores, of the truth, and of clusters: candidates that were not drawn
independently (the nodes of one request, the runs that one node was seen in) are resampled
together, so that an interval does not pretend to more evidence than there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.arrays import Bools, Floats, Ints
from grapheraser.seeding import generator

FALSE_POSITIVE_RATES = (0.001, 0.01)
_TAILS = ((1 - 0.95) / 2, 1 - (1 - 0.95) / 2)


def plain(value: Any) -> Any:
    """Turn figures into what JSON can hold; rates are spelled as text where they are keys."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else f"{key:g}": plain(one) for key, one in value.items()
        }
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


class Result:
    """Base class of figures, which are dataclasses."""

    def to_dict(self) -> dict[str, Any]:
        figures: dict[str, Any] = plain(self)
        return figures


@dataclass(frozen=True)
class Interval(Result):
    """A figure and its bootstrap confidence interval of 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def holds(self, value: float) -> bool:
        """True where ``value`` lies in the interval."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Rates(Result):
    """Success of an attack."""

    auc: Interval  # chance that a random member scores above a random non-member; 0.5 is guessing
    # Share of the members found while at most that share of non-members is accused, by
    # false-positive rate.
    tpr: dict[float, Interval]
    # members, others: how many candidates there were of each kind.
    members: int
    others: int


def auc(scores: NDArray[np.floating], member: Bools) -> float:
    """Return the area under the ROC curve; ties count half, and 0.5 where a group is empty."""
    return _Ranked.of(scores, member).figures(np.ones(len(scores)), ())[0]


def rates(
    scores: NDArray[np.floating],
    member: Bools,
    *,
    clusters: NDArray[np.integer] | None = None,
    seed: int = 0,
    resamples: int = 400,
) -> Rates:
    """Return AUC and true-positive rates with percentile intervals from a cluster bootstrap.

    Scores are high for "was there". Candidates of one cluster are resampled together; by default
    each is on its own, members and others resampled apart.
    """
    ranked = _Ranked.of(scores, member)
    rng = generator(seed, "audit", "bootstrap")
    found = ranked.figures(np.ones(len(scores)))
    drawn = [ranked.figures(_weights(member, clusters, rng)) for _ in range(resamples)]
    low, high = np.quantile([found, *drawn], _TAILS, axis=0)
    intervals = [
        Interval(value, min(float(a), value), max(float(b), value))
        for value, a, b in zip(found, low, high, strict=True)
    ]
    return Rates(
        auc=intervals[0],
        tpr=dict(zip(FALSE_POSITIVE_RATES, intervals[1:], strict=True)),
        members=int(member.sum()),
        others=int((~member).sum()),
    )


def first_of_groups(scores: ArrayLike, *, seed: int = 0) -> Rates:
    """Return the rates where the first of each group is true; groups are resampled whole."""
    found = np.asarray(scores, dtype=np.float64)
    groups, size = found.shape
    first = np.tile(np.arange(size) == 0, groups)
    clusters = np.repeat(np.arange(groups), size)
    return rates(found.ravel(), first, clusters=clusters, seed=seed)


def mean_interval(values: NDArray[np.floating], *, seed: int = 0) -> Interval:
    """Return the mean of some figures, with a percentile interval of a bootstrap over them."""
    rng = generator(seed, "audit", "bootstrap", "mean")
    value = float(np.mean(values))
    drawn = [float(rng.choice(values, size=len(values)).mean()) for _ in range(400)]
    low, high = np.quantile([value, *drawn], _TAILS)
    return Interval(value, float(low), float(high))


def adjusted_rand_index(a: NDArray[np.integer], b: NDArray[np.integer]) -> float:
    """Measure how two labellings of the same things agree: 1 is the same partition, 0 chance."""
    table = np.zeros((int(a.max()) + 1, int(b.max()) + 1))
    np.add.at(table, (a, b), 1)
    together = _pairs(table).sum()
    in_a, in_b = _pairs(table.sum(axis=1)).sum(), _pairs(table.sum(axis=0)).sum()
    expected = in_a * in_b / max(_pairs(np.array(float(len(a)))), 1.0)
    most = (in_a + in_b) / 2
    return 1.0 if most == expected else float((together - expected) / (most - expected))


def _pairs(counts: Floats) -> Floats:
    return counts * (counts - 1) / 2


def _weights(
    member: Bools, clusters: NDArray[np.integer] | None, rng: np.random.Generator
) -> Floats:
    """Draw one resample; return how often each candidate is in it."""
    if clusters is None:
        weights = np.zeros(len(member))
        for group in (np.flatnonzero(member), np.flatnonzero(~member)):
            if len(group):
                np.add.at(weights, rng.choice(group, size=len(group)), 1.0)
        return weights
    names, at = np.unique(clusters, return_inverse=True)
    times = np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))
    return times[at].astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Candidates by falling score, so that every resample is two running sums."""

    order: Ints  # of the candidates
    starts: Ints  # where in that order each distinct score begins
    member: Floats  # the truth, in that order

    @classmethod
    def of(cls, scores: NDArray[np.floating], member: Bools) -> _Ranked:
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        return cls(order, starts, member[order].astype(np.float64))

    def figures(
        self, weights: Floats, fprs: tuple[float, ...] = FALSE_POSITIVE_RATES
    ) -> list[float]:
        """Return the AUC, then the true-positive rate at each of the false-positive rates."""
        true, false = self._curve(weights)
        if not len(true) or true[-1] == 0 or false[-1] == 0:
            return [0.5, *(0.0 for _ in fprs)]
        heights = (true + np.concatenate([[0.0], true[:-1]])) / 2
        widths = np.diff(np.concatenate([[0.0], false]))
        auc = float((heights * widths).sum() / (true[-1] * false[-1]))
        reached = (true[false <= fpr * false[-1]].max(initial=0.0) for fpr in fprs)
        return [auc, *(float(most / true[-1]) for most in reached)]

    def _curve(self, weights: Floats) -> tuple[Floats, Floats]:
        """Count members and others accused at each threshold, from the strictest on."""
        if not len(self.order):
            return np.zeros(0), np.zeros(0)
        ranked = weights[self.order]
        true = np.add.reduceat(ranked * self.member, self.starts)
        false = np.add.reduceat(ranked * (1 - self.member), self.starts)
        return np.cumsum(true), np.cumsum(false)
