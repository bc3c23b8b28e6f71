"""Times, states and counts as pages say them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup


def moment(at: datetime | None) -> Markup:
    """A time as an element that scripts keep in relation to now; a dash for None."""
    if at is None:
        return Markup("-")
    utc = at.astimezone(UTC)
    stamp = utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        stamp, f"{utc:%Y-%m-%d %H:%M:%S} UTC", f"{utc:%Y-%m-%d %H:%M} UTC"
    )


def sentence(text: str) -> str:
    """Text with a capital letter in front and a full stop behind."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


FILTERS: Mapping[str, Callable[..., Any]] = {"moment": moment, "sentence": sentence}
GLOBALS: Mapping[str, Any] = {}
