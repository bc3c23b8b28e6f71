"""Durations, counts and lists in words: one form for pages, tables and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grapheraser.kinds import KINDS

# (used below this many seconds, units in a second, name)
_UNITS = ((1e-3, 1e6, "us"), (1.0, 1e3, "ms"), (120.0, 1.0, "s"), (7200.0, 1 / 60, "min"))


def duration(seconds: float | None) -> str:
    """Seconds to three figures, in the unit that suits them; a dash for None.

    >>> duration(0.02431), duration(1.5), duration(948_790)
    ('24.3 ms', '1.50 s', '264 h')
    """
    if seconds is None:
        return "-"
    if seconds == 0:
        return "0 s"
    for below, scale, unit in _UNITS:
        if seconds < below:
            return f"{three_figures(seconds * scale)} {unit}"
    return f"{three_figures(seconds / 3600)} h"


def three_figures(value: float) -> str:
    """A number without an exponent, and never with fewer digits than it has.

    >>> three_figures(5.6149), three_figures(41.38), three_figures(1980.2)
    ('5.61', '41.4', '1,980')
    """
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{decimals}f}"


def plural(count: int, noun: str) -> str:
    """The count with its noun.

    >>> plural(1, "node"), plural(2166, "node")
    ('1 node', '2,166 nodes')
    """
    if count == 1:
        return f"{count} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith('s') else 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Words as a list in a sentence.

    >>> listed(["features", "edges", "labels"])
    'features, edges and labels'
    """
    *first, end = words or ("",)
    return f"{', '.join(first)} {last} {end}" if first else end


def contents(counts: Mapping[str, int]) -> str:
    """Say what a request or a receipt is about.

    >>> contents({"nodes": 2, "edges": 0, "features": 1})
    '2 nodes and 1 feature row'
    """
    found = [(counts.get(name), kind.words) for name, kind in KINDS.items()]
    return listed([plural(count, words) for count, words in found if count])
