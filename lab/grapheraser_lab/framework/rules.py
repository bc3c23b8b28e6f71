"""Rules that judge a sentence: from figures to cases, and from cases to a verdict.

A rule is a pure function of figures. It returns its cases, each true, false or within noise, and
the figures in words; everything that a reader needs to follow the verdict goes into the `Claim`.
Every rule is registered, so that the tests can hold each to an example and to a counter-example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from grapheraser.registry import Registry
from grapheraser.reports.wording import listed, plural
from grapheraser_lab.framework.noise import Answer

HOLDS, FAILS = "holds", "does not hold"
# What it can be else, each a situation of its own.
MIXED, NOISY, SPLIT = "cells disagree", "too few runs", "readings disagree"
UNTESTED = "not tested"
VERDICTS = (HOLDS, MIXED, SPLIT, NOISY, FAILS, UNTESTED)
# From which share of the cases on a sentence holds, and below which it does not. A paper that
# states a rule without "all" allows for some exceptions: one in five; with "most", two in five.
USUAL, MOST, EVERY = (0.8, 0.4), (0.6, 0.35), (1.0, 0.5)
# How far the shares are moved to see whether a verdict hangs on them.
NEARBY = 0.1
_NAMED = 6


class Case(NamedTuple):
    """One case of a sentence: what it is about, and whether it is true there."""

    name: str
    true: Answer


class Finding(NamedTuple):
    """The finding of a rule: its cases, and the figures in words."""

    cases: Sequence[Case]
    figures: str


class Reading(NamedTuple):
    """The verdict under one way to read the paper."""

    name: str
    verdict: str
    figures: str


@dataclass(frozen=True)
class Claim:
    """A conclusion of the paper, and what our figures say about it.

    Attributes:
        rule: key of the rule that judged it.
        statement: the conclusion as the paper words it; in our words for one of our own.
        test: what was tested, in words.
        verdict: one of `VERDICTS`.
        evidence: the figures, in words.
        judgement: one sentence: in how many cases it is true, and where not.
        ours: whether the statement is this project's own instead of the paper's.
        readings: the verdict under each way to read the paper, where there are several.
        choice: which choice that the paper leaves open decides the verdict; empty where none does.
        hangs: whether another share of cases, `NEARBY`, gives another verdict.
    """

    rule: str
    statement: str
    test: str
    verdict: str
    evidence: str
    judgement: str
    ours: bool = False
    readings: tuple[Reading, ...] = ()
    choice: str = ""
    hangs: bool = False


@dataclass(frozen=True)
class Rule:
    """A sentence and its test.

    Attributes:
        key: its name.
        statement: as the paper words it.
        test: in words.
        find: from figures to cases.
        limits: from which share of true cases on it holds, and holds in part.
        noun: of a case.
        ours: see `Claim`.
        untested: why figures from here can't decide it: another algorithm, engine or hardware.
    """

    key: str
    statement: str
    test: str
    find: Callable[..., Finding]
    limits: tuple[float, float] = USUAL
    noun: str = "case"
    ours: bool = False
    untested: str = ""

    def __call__(self, *figures: Any) -> list[Claim]:
        """The claim, from what `find` takes; none where there are no cases."""
        found = self.find(*figures)
        if not found.cases:
            return []
        answers = [case.true for case in found.cases]
        verdict, counted = verdict_of(answers, self.limits), _counted(found.cases, self.noun)
        others = {
            verdict_of(answers, (self.limits[0] + off, self.limits[1] + off))
            for off in (-NEARBY, NEARBY)
            if len(answers) > 1 and self.limits != EVERY
        }
        judgement = f"{verdict.capitalize()}: {counted}."
        if self.untested:
            verdict = UNTESTED
            judgement = f"Not tested: {self.untested} Here: {counted}."
        told = self.statement, self.test, verdict, found.figures, judgement, self.ours
        hangs = not self.untested and bool(others - {verdict})
        return [Claim(self.key, *told, hangs=hangs)]


RULES: Registry[Rule] = Registry("rule")


def rule(
    key: str,
    statement: str,
    test: str,
    *,
    limits: tuple[float, float] = USUAL,
    noun: str = "case",
    ours: bool = False,
    untested: str = "",
) -> Callable[[Callable[..., Finding]], Rule]:
    """Make a function from figures to a `Finding` the test of a sentence."""

    def made(find: Callable[..., Finding]) -> Rule:
        return RULES.add(key, Rule(key, statement, test, find, limits, noun, ours, untested))

    return made


def verdict_of(answers: Sequence[Answer], limits: tuple[float, float] = USUAL) -> str:
    """From the cases to a verdict.

    It holds where enough cases are true beyond noise, and does not where too few would be if all
    that is within noise were true. In between, cells disagree, unless what is within noise could
    still bring it to one of both sides: then there were too few runs.
    """
    total, yes, no = len(answers), answers.count(True), answers.count(False)
    if not total:
        return NOISY
    holds, fails = (min(limit, 1.0) * total for limit in limits)
    if yes >= holds:
        return HOLDS
    if total - no < fails:
        return FAILS
    return NOISY if total - no >= holds or yes < fails else MIXED


def compared(before: Sequence[Claim], after: Sequence[Claim], names: tuple[str, str]) -> Finding:
    """Tell of each sentence whether two sets of figures end in one verdict.

    Too few runs on either side are no verdict: such a sentence is within noise.
    """
    theirs = {claim.rule: claim.verdict for claim in before}
    both = [(claim, theirs[claim.rule]) for claim in after if claim.rule in theirs]
    cases = [
        Case(one.rule, None if NOISY in (one.verdict, was) else one.verdict == was)
        for one, was in both
    ]
    moved = [
        f"{claim.rule}: {names[0]} {was}, {names[1]} {claim.verdict} ({claim.evidence})"
        for (claim, was), case in zip(both, cases, strict=True)
        if case.true is False
    ]
    return Finding(cases, f"Differently judged: {'; '.join(moved) or 'none'}.")


def by_reading(claims: dict[str, list[Claim]], *, leads: bool = False) -> list[Claim]:
    """One claim of the claims under several readings: their verdict where they agree.

    Where they don't, the first reading gives the verdict if it ``leads``; else readings disagree.
    """
    known = {name: some[0] for name, some in claims.items() if some}
    if not known:
        return []
    readings = tuple(
        Reading(name, c.verdict, f"{c.judgement} {c.evidence}") for name, c in known.items()
    )
    first, verdicts = next(iter(known.values())), {claim.verdict for claim in known.values()}
    if len(known) == 1:
        return [first]
    if len(verdicts) == 1:
        return [replace(first, readings=readings)]
    told = "; ".join(f"{name}: {claim.verdict}" for name, claim in known.items())
    if leads:
        return [replace(first, readings=readings, choice=f"By reading: {told}.")]
    judgement = f"{SPLIT.capitalize()}. {told[0].upper()}{told[1:]}."
    return [replace(first, verdict=SPLIT, judgement=judgement, readings=readings, hangs=False)]


def _counted(cases: Iterable[Case], noun: str) -> str:
    """``true in 9 of 12 cases, false in 2 (cora gcn, cora gat), within noise in 1 (...)``."""
    known = list(cases)
    if len(known) == 1:
        said = {True: "it is true", False: "it is false", None: "the difference is within noise"}
        return said[known[0].true]
    true = sum(case.true is True for case in known)
    words = [f"true in {true} of {plural(len(known), noun)}"]
    for answer, name in ((False, "false in"), (None, "within noise in")):
        some = [case.name for case in known if case.true is answer]
        if some:
            words.append(f"{name} {len(some)} ({_few(some)})")
    return ", ".join(words)


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return listed(names) if more <= 1 else f"{', '.join(names[:_NAMED])} and {more} more"
