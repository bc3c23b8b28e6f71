"""One rule of noise for every verdict: paired differences over runs, with standard errors.

Run r has the same split and the same seed whatever is measured in it, so two figures are compared
run by run. A difference comes with its standard error and, by Student's t, with an interval that
covers the true difference in 95 of 100 cases. A question about it is answered with yes or no where
the whole interval says so, and else not at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from grapheraser_lab.framework.means import LEAST, Mean

# Yes, no, or within noise.
Answer = bool | None
COVERED = 0.95


@cache
def quantile(degrees: int) -> float:
    """How many standard errors half an interval is wide; the normal one without degrees."""
    from scipy.stats import norm, t

    share = (1 + COVERED) / 2
    return float(t.ppf(share, degrees) if degrees > 0 else norm.ppf(share))


@dataclass(frozen=True)
class Difference:
    """One figure minus another.

    Attributes:
        mean: over the runs that both have.
        error: its standard error.
        degrees: of freedom; 0 where the error is not estimated from runs.
        collapsed: whether the first, and the second, figure has collapsed. Such a figure is never
            better than another, and never comparable to one.
    """

    mean: float
    error: float
    degrees: int = 0
    collapsed: tuple[bool, bool] = (False, False)

    @property
    def low(self) -> float:
        return self.mean - quantile(self.degrees) * self.error

    @property
    def high(self) -> float:
        return self.mean + quantile(self.degrees) * self.error

    @property
    def positive(self) -> Answer:
        """Yes where all of the interval is above 0, no where all of it is below."""
        return True if self.low > 0 else False if self.high < 0 else None

    def __str__(self) -> str:
        if math.isinf(self.error):
            return f"{self.mean:+.3f} (one run)"
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"

    def above(self, least: float = LEAST) -> Answer:
        """Tell whether it is above 0 beyond noise, and at least ``least``; no where it is below."""
        if self.collapsed[0]:
            return False
        if self.low > 0 and self.mean >= least:
            return True
        return False if self.high < least else None

    def at_most(self, limit: float) -> Answer:
        """Tell whether it is not above ``limit``."""
        if any(self.collapsed):
            return False
        return True if self.high <= limit else False if self.low > limit else None

    def within(self, limit: float) -> Answer:
        """Tell whether it lies between minus and plus ``limit``."""
        return all_of([self.at_most(limit), (-self).at_most(limit)])

    def __neg__(self) -> Difference:
        return Difference(-self.mean, self.error, self.degrees, self.collapsed[::-1])

    def over(self, base: float) -> Difference:
        """The difference as a share of ``base``."""
        return Difference(self.mean / base, self.error / abs(base), self.degrees, self.collapsed)


def paired(one: Mean, other: Mean) -> Difference:
    """The first minus the second, run by run; by their own errors where fewer than two are shared.

    A single run has the error of counting its test nodes.
    """
    theirs = dict(other.by_run)
    gaps = [value - theirs[run] for run, value in one.by_run if run in theirs]
    gone = one.collapsed, other.collapsed
    if len(gaps) > 1:
        return replace(spread_of(gaps), collapsed=gone)
    return Difference(one.mean - other.mean, math.hypot(one.error, other.error), 0, gone)


def spread_of(values: Iterable[float]) -> Difference:
    """The mean of values that were measured run by run, with its error; one alone tells nothing."""
    known = np.fromiter(values, dtype=np.float64)
    error = float(known.std(ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else math.inf
    return Difference(float(known.mean()), error, max(0, len(known) - 1))


def all_of(answers: Iterable[Answer]) -> Answer:
    """No where one is no; yes where all are yes."""
    known = list(answers)
    return False if False in known else None if None in known else True


def any_of(answers: Iterable[Answer]) -> Answer:
    """Yes where one is yes; no where all are no."""
    known = list(answers)
    return True if True in known else None if None in known else False
