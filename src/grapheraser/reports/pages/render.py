"""Pages from templates: one environment, one stylesheet, everything escaped, nothing from outside.

A page is a template of ``reports/templates`` that extends ``base.html.j2``. Pages hold their
stylesheet and their pictures, so that one file is all that there is to keep or to send.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from grapheraser.reports.figures.drawing import Drawing
from grapheraser.reports.tables import MARKS, as_entry
from grapheraser.reports.wording import contents, duration, plural


@dataclass(frozen=True)
class Picture:
    """A picture of a page."""

    alt: str  # the picture in words
    png: bytes | None = None  # a file
    drawing: Drawing | None = None  # in place of a file: follows the page's colours
    caption: str = ""  # below it


def drawn(drawing: Drawing, caption: str = "") -> Picture:
    """A drawing as a picture of a page; needs no extra."""
    return Picture(drawing.about, drawing=drawing, caption=caption)


def standalone(drawing: Drawing, margin: int = 16) -> str:
    """A drawing as an SVG file that is light or dark as the reader likes."""
    template = environment().get_template("drawing.svg.j2")
    width, height = (round(size + 2 * margin) for size in (drawing.width, drawing.height))
    return template.render(drawing=drawing, width=width, height=height, margin=margin)


def stylesheet() -> str:
    """Return the stylesheet that every page holds."""
    return environment().get_template("pages.css.j2").render()


def render(template: str, **values: Any) -> str:
    """Fill a template, e.g. ``audit`` for ``audit.html.j2``; a value that it lacks is an error."""
    return environment().get_template(f"{template}.html.j2").render(**values)


@cache
def environment(*packages: str) -> Environment:
    """Templates of these packages, then those of the reports; everything is escaped."""
    loaders = [PackageLoader(package) for package in (*packages, "grapheraser.reports")]
    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "base64": lambda content: base64.b64encode(content).decode(),
        "duration": duration,
        "contents": contents,
        "entry": as_entry,
    }
    made.globals |= {"plural": plural, "marks": MARKS}
    return made
