"""The members of the pool: shards, and closed-form ones that count or regress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grapheraser.aggregation.members.base import FittedMember, Member
from grapheraser.aggregation.members.counting import NAMES as COUNTING
from grapheraser.aggregation.members.counting import Counting
from grapheraser.aggregation.members.features import FeatureRegression
from grapheraser.aggregation.members.interactions import InteractionRegression
from grapheraser.aggregation.members.paths import PathRegression
from grapheraser.aggregation.members.pattern import PatternRegression
from grapheraser.aggregation.members.shards import RoutedShards
from grapheraser.aggregation.members.surprises import Surprises
from grapheraser.aggregation.members.target_pattern import TargetPattern
from grapheraser.aggregation.members.target_words import TargetWords
from grapheraser.errors import ParameterError

__all__ = [
    "BEST",
    "KNOWN",
    "MEMBERS",
    "PATHS",
    "START",
    "FittedMember",
    "Member",
    "PathRegression",
    "RoutedShards",
    "closed_form",
    "closed_form_of_targets",
    "named",
]

# The member of typed graphs.
PATHS = "paths"
# Weights that the pool starts from, and keeps where it has nothing to learn from.
START = {
    "words": 0.15,
    "labels": 0.45,
    "edges": 0.1,
    "pattern": 0.3,
    "interactions": 0.3,
    "surprises": 0.3,
    "features": 0.3,
    "shards": 0.3,
    PATHS: 0.3,
}
# Without the other closed-form members, what they get by with would cost up to 0.03 of F1.
_ALONE = FeatureRegression(columns=384, spread=4, second=16)
# Several labels and numbers are learned with more neighbours, and pulled more to nothing.
_RIDGE = 30.0
_OF_TARGETS = FeatureRegression(first=16, second=16, ridge=_RIDGE)
KNOWN = tuple(name for name in START if name not in ("shards", PATHS))
# By default; the other two are there to be named, `interactions` in the place of `pattern`.
MEMBERS = tuple(name for name in KNOWN if name not in ("interactions", "surprises"))
# What is best in the mean, on validation nodes; see docs/aggregation.md.
BEST = tuple(name for name in KNOWN if name != "pattern")


def named(members: Sequence[str] | None) -> tuple[str, ...]:
    """The closed-form members that an argument ``members`` stands for, in their order."""
    if members is None:
        return MEMBERS
    known = f"a sequence of names among {', '.join(KNOWN)}"
    if isinstance(members, str) or not isinstance(members, Sequence):
        raise ParameterError.of("members", "GraphEraser", known, members)
    if any(name not in KNOWN for name in members):
        raise ParameterError.of("members", "GraphEraser", known, members)
    return tuple(name for name in KNOWN if name in members)


def closed_form(names: Sequence[str]) -> dict[str, Member]:
    """The closed-form members of these names; those that share their sums are one."""
    counting = tuple(name for name in COUNTING if name in names)
    found: dict[str, Member] = {"counts": Counting(counting)} if counting else {}
    if "pattern" in names:
        found["pattern"] = PatternRegression()
    if "interactions" in names:
        found["interactions"] = InteractionRegression()
    if "surprises" in names:
        found["surprises"] = Surprises()
    if "features" in names:
        found["features"] = FeatureRegression() if len(names) > 1 else _ALONE
    return found


def closed_form_of_targets(names: Sequence[str], *, wide: bool) -> dict[str, Member]:
    """The closed-form members of these names that take several labels and numbers.

    Args:
        names: of members of classes; those that count labels have no part in it.
        wide: whether features are so many that `features` can't take each for itself. Then
            `words` do, and together with them hashed ones add nothing.
    """
    words = wide and "words" in names
    found: dict[str, Member] = {"words": TargetWords()} if words else {}
    if "pattern" in names or "interactions" in names:
        found["pattern"] = TargetPattern()
    if "features" in names and not words:
        alone = names == ("features",)
        found["features"] = replace(_ALONE, ridge=_RIDGE) if alone else _OF_TARGETS
    return found
