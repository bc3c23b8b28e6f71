"""Times, counts and reasons as pages say them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from grapheraser.kinds import KINDS
from grapheraser.reports.wording import listed, plural
from grapheraser.service.queue.requests import Request, State, utc_text

_NOUNS = {
    "subjects": "subject",
    **{name: kind.words for name, kind in KINDS.items()},
    "changes": "change",
}
# Advice about a failure, by the kind of error that its reason ends with.
_ADVICE = {
    "EmptyEnsembleError": "Nothing would be left to learn from. Cancel it, and delete the run if "
    "all of it is to be forgotten.",
    "StorageFullError": "Make room on the disk. It is then carried out by itself.",
    "DatabaseError": "See that the database is reachable, writable and not full.",
    "MissingExtraError": "Install the package where the service runs, and restart it.",
    "MemoryError": "Give the service more memory, or let it train fewer shards at once.",
    "TrainingError": "The log of the service says which shard failed, and why.",
}
_BY_ITSELF = "It is tried again by itself; the log of the service says more."
_BY_HAND = "As it is, it can't succeed. Cancel it, and submit one that fits the run."


def moment(at: datetime | None) -> Markup:
    """Write a time as an element that scripts keep relative to now; a dash for None."""
    if at is None:
        return Markup("-")
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        utc_text(at), f"{utc:%Y-%m-%d %H:%M:%S} UTC", f"{utc:%Y-%m-%d %H:%M} UTC"
    )


def exact(at: datetime) -> Markup:
    """Write a time to the second, which stays as it is."""
    utc = at.astimezone(UTC)
    return Markup('<time class="exact" datetime="{}">{} UTC</time>').format(
        utc_text(at), f"{utc:%Y-%m-%d %H:%M:%S}"
    )


def clock(at: datetime, since: datetime) -> Markup:
    """Write a time of the same day without its date; of another day as `exact` does."""
    utc = at.astimezone(UTC)
    if utc.date() != since.astimezone(UTC).date():
        return exact(at)
    return Markup('<time class="exact" datetime="{}">{:%H:%M:%S}</time>').format(utc_text(at), utc)


def sentence(text: str) -> str:
    """Begin a text with a capital letter and end it with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def spoken(reason: str | None) -> str:
    """Return a reason without the kind of error that it ends with."""
    return (reason or "it failed").partition(" (")[0]


def named(counts: Mapping[str, int]) -> str:
    """Say how much a request or a receipt names.

    >>> named({"subjects": 1, "edges": 2})
    '1 subject and 2 edges'
    """
    found = [plural(counts[key], noun) for key, noun in _NOUNS.items() if counts.get(key)]
    return listed(found) if found else "nothing"


def advice(request: Request) -> str:
    """Advise what to do about a request that failed; nothing for others."""
    if request.state is not State.FAILED:
        return ""
    kind = (request.reason or "").rpartition("(")[2].rstrip(")")
    if kind in _ADVICE:
        return _ADVICE[kind]
    return _BY_HAND if request.retry_at is None else _BY_ITSELF


FILTERS: Mapping[str, Callable[..., Any]] = {
    "advice": advice,
    "clock": clock,
    "exact": exact,
    "moment": moment,
    "named": named,
    "sentence": sentence,
    "spoken": spoken,
}
