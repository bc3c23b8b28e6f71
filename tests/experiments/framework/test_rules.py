"""Verdicts follow from cases: true, false, or within noise."""

from __future__ import annotations

import pytest

from grapheraser.experiments.framework.rules import (
    EVERY,
    FAILS,
    HOLDS,
    MOST,
    OPEN,
    PARTLY,
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
        (4, 6, 0, PARTLY),
        (5, 1, 4, PARTLY),
        (3, 7, 0, FAILS),
        (0, 7, 3, FAILS),
        (3, 5, 2, OPEN),
        (0, 0, 10, OPEN),
        (0, 0, 0, OPEN),
    ],
)
def test_noise_is_neither_for_nor_against(yes: int, no: int, unclear: int, verdict: str) -> None:
    answers = [True] * yes + [False] * no + [None] * unclear
    assert verdict_of(answers) == verdict


def test_most_and_every_have_limits_of_their_own() -> None:
    answers = [True] * 6 + [False] * 4
    assert [verdict_of(answers, limits) for limits in (MOST, EVERY)] == [HOLDS, PARTLY]


def test_a_claim_says_where_it_is_false_and_where_noise_decides() -> None:
    (claim,) = _rule(True, False, None, noun="data set")(left_out=2)
    assert claim.judgement == (
        "Can't be told: true in 1 of 3 data sets, false in 1 (c1), within noise in 1 (c2). "
        "2 collapsed figures left out."
    )
    assert (claim.statement, claim.test, claim.evidence) == ("It is so.", "We looked.", "Figures.")
    assert claim.verdict == OPEN


def test_a_claim_without_cases_is_not_made() -> None:
    assert _rule()() == []


@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        ((HOLDS, HOLDS), HOLDS),
        ((FAILS, HOLDS), PARTLY),
        ((FAILS, PARTLY), PARTLY),
        ((FAILS, OPEN), FAILS),
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
    disagree = len(set(readings)) > 1 and bool({HOLDS, PARTLY} & set(readings))
    assert ("The reading decides" in claim.choice) == disagree
    assert claim.judgement.lower().startswith(verdict)
