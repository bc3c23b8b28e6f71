"""Verdicts follow from shares."""

from __future__ import annotations

from grapheraser.experiments.framework.experiment import (
    FAILS,
    HOLDS,
    OPEN,
    PARTLY,
    Claim,
    judged,
    judged_claim,
)


def test_verdicts_follow_from_shares() -> None:
    assert [judged(good, 10) for good in (8, 4, 3)] == [HOLDS, PARTLY, FAILS]
    assert judged(0, 0) == OPEN


def test_a_claim_without_cases_is_not_made() -> None:
    assert judged_claim("x", [], lambda count: 1 / 0) == []  # type: ignore[return-value, arg-type]
    (claim,) = judged_claim("x", [True, False, True], "In {}.".format, noun="data set", ours=True)
    assert claim == Claim("x", PARTLY, "In 2 of 3 data sets.", ours=True)
