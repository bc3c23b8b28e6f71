"""Verdicts follow from cases: true, false, or within noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grapheraser_lab.framework.means import mean_of
from grapheraser_lab.framework.noise import paired
from grapheraser_lab.framework.rules import (
    EVERY,
    FAILS,
    HOLDS,
    MIXED,
    MOST,
    NOISY,
    SPLIT,
    UNTESTED,
    Case,
    Claim,
    Finding,
    Rule,
    by_reading,
    verdict_of,
)


def _rule(*answers: bool | None, noun: str = "case") -> Rule:
    cases = [Case(f"c{i}", answer) for i, answer in enumerate(answers)]
    return Rule("r", "It is so.", "We looked.", lambda: Finding(cases, "Figures."), noun=noun)


@pytest.mark.parametrize(
    ("yes", "no", "unclear", "verdict"),
    [
        (8, 2, 0, HOLDS),
        (8, 0, 2, HOLDS),
        (4, 6, 0, MIXED),
        (5, 4, 1, MIXED),
        (5, 1, 4, NOISY),
        (3, 7, 0, FAILS),
        (0, 7, 3, FAILS),
        (3, 5, 2, NOISY),
        (0, 0, 10, NOISY),
        (0, 0, 0, NOISY),
    ],
)
def test_noise_is_neither_for_nor_against(yes: int, no: int, unclear: int, verdict: str) -> None:
    answers = [True] * yes + [False] * no + [None] * unclear
    assert verdict_of(answers) == verdict


def test_most_and_every_have_limits_of_their_own() -> None:
    answers = [True] * 6 + [False] * 4
    assert [verdict_of(answers, limits) for limits in (MOST, EVERY)] == [HOLDS, MIXED]


def test_a_claim_says_where_it_is_false_and_where_noise_decides() -> None:
    (claim,) = _rule(True, False, None, noun="data set")()
    assert claim.judgement == (
        "Too few runs: true in 1 of 3 data sets, false in 1 (c1), within noise in 1 (c2)."
    )
    assert (claim.statement, claim.test, claim.evidence) == ("It is so.", "We looked.", "Figures.")
    assert claim.verdict == NOISY


def test_what_figures_from_here_cannot_decide_is_not_tested() -> None:
    rule = replace(_rule(False, False), untested="the hardware is another.")
    (claim,) = rule()
    assert claim.verdict == UNTESTED
    assert claim.judgement == (
        "Not tested: the hardware is another. Here: true in 0 of 2 cases, false in 2 (c0 and c1)."
    )


def test_a_verdict_that_hangs_on_the_share_of_cases_says_so() -> None:
    assert _rule(*[True] * 8, *[False] * 2)()[0].hangs
    assert not _rule(*[True] * 10)()[0].hangs


@pytest.mark.parametrize("first", [True, False])
def test_collapsed_figures_are_neither_better_nor_comparable(first: bool) -> None:
    low, high = mean_of([0.3, 0.31]), mean_of([0.3, 0.31])
    assert low is not None
    assert high is not None
    one, other = (replace(low, collapsed=first), replace(high, collapsed=not first))
    gap = paired(one, other)
    assert gap.within(0.1) is False
    assert gap.at_most(0.1) is False
    if first:
        assert paired(one, replace(high, mean=0.1, by_run=((0, 0.1), (1, 0.11)))).above() is False


def test_a_claim_without_cases_is_not_made() -> None:
    assert _rule()() == []


@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        ((HOLDS, HOLDS), HOLDS),
        ((FAILS, HOLDS), SPLIT),
        ((FAILS, MIXED), SPLIT),
        ((FAILS, NOISY), SPLIT),
    ],
)
def test_where_readings_disagree_the_claim_says_so(readings: tuple[str, ...], verdict: str) -> None:
    claims = {
        f"way {i}": [Claim("r", "s", "t", found, "e", f"{found}!")]
        for i, found in enumerate(readings)
    }
    (claim,) = by_reading({**claims, "nothing": []})
    assert claim.verdict == verdict
    assert [reading.verdict for reading in claim.readings] == list(readings)
    assert claim.judgement.lower().startswith(verdict)
    (leading,) = by_reading(claims, leads=True)
    assert leading.verdict == readings[0]
    assert bool(leading.choice) == (len(set(readings)) > 1)
