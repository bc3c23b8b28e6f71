"""Rules that judge a sentence: from figures to cases, and from cases to a verdict.

A rule is a pure function of figures. It returns its cases, each true, false or within noise, and
the figures in words; everything that a reader needs to follow the verdict goes into the `Claim`.
Every rule is registered, so that the tests can hold each to an example and to a counter-example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from grapheraser.experiments.framework.noise import Answer
from grapheraser.registry import Registry
from grapheraser.reports.wording import listed, plural

HOLDS, PARTLY, FAILS, OPEN = "holds", "holds in part", "does not hold", "can't be told"
# From which share of the cases on a sentence holds, and holds in part.
USUAL, MOST, EVERY = (0.8, 0.4), (0.6, 0.35), (1.0, 0.5)
_NAMED = 6


class Case(NamedTuple):
    """One case of a sentence: what it is about, and whether it is true there."""

    name: str
    true: Answer


class Finding(NamedTuple):
    """What a rule found: its cases, and the figures in words."""

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
        verdict: holds, holds in part, does not hold, or can't be told.
        evidence: the figures, in words.
        judgement: one sentence: in how many cases it is true, and where not.
        ours: whether the statement is this project's own instead of the paper's.
        readings: the verdict under each way to read the paper, where there are several.
        choice: which choice that the paper leaves open decides the verdict; empty where none does.
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
    """

    key: str
    statement: str
    test: str
    find: Callable[..., Finding]
    limits: tuple[float, float] = USUAL
    noun: str = "case"
    ours: bool = False

    def __call__(self, *figures: Any, left_out: int = 0) -> list[Claim]:
        """The claim; none where there are no cases.

        Args:
            figures: what `find` takes.
            left_out: collapsed figures that were kept from it.
        """
        found = self.find(*figures)
        if not found.cases:
            return []
        verdict = verdict_of([case.true for case in found.cases], self.limits)
        judgement = f"{verdict.capitalize()}: {_counted(found.cases, self.noun)}."
        if left_out:
            judgement += f" {plural(left_out, 'collapsed figure')} left out."
        return [
            Claim(self.key, self.statement, self.test, verdict, found.figures, judgement, self.ours)
        ]


RULES: Registry[Rule] = Registry("rule")


def rule(
    key: str,
    statement: str,
    test: str,
    *,
    limits: tuple[float, float] = USUAL,
    noun: str = "case",
    ours: bool = False,
) -> Callable[[Callable[..., Finding]], Rule]:
    """Make a function from figures to a `Finding` the test of a sentence."""

    def made(find: Callable[..., Finding]) -> Rule:
        return RULES.add(key, Rule(key, statement, test, find, limits, noun, ours))

    return made


def verdict_of(answers: Sequence[Answer], limits: tuple[float, float] = USUAL) -> str:
    """From the cases to a verdict.

    It holds, or holds in part, where enough cases are true beyond noise; it does not hold where it
    would not even hold in part if all that is within noise were true; and else it can't be told.
    """
    total, yes, no = len(answers), answers.count(True), answers.count(False)
    if not total:
        return OPEN
    holds, partly = limits
    if yes >= holds * total:
        return HOLDS
    if total - no < partly * total:
        return FAILS
    return PARTLY if yes >= partly * total else OPEN


def by_reading(claims: dict[str, list[Claim]]) -> list[Claim]:
    """One claim of the claims under several readings: their verdict where they agree.

    Where they don't, the reading decides: the sentence holds in part if it holds, or holds in
    part, under one of them, and does not hold if it can only be told that it does not.
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
    decides = bool(verdicts & {HOLDS, PARTLY})
    return [
        replace(
            first,
            verdict=(verdict := PARTLY if decides else FAILS),
            judgement=f"{verdict.capitalize()}. {told[0].upper()}{told[1:]}.",
            readings=readings,
            choice="The reading decides." if decides else "",
        )
    ]


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
