"""Drawings for pages: SVG that takes its colours from the page's stylesheet, light or dark.

Nothing here needs matplotlib. A drawing says what each shape is (``lit``, ``quiet``, ...), and
``templates/drawing.css`` says what that looks like. Widths are those of a phone, so that words keep
their size there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from markupsafe import Markup, escape

# What fits on a phone without scaling.
WIDTH = 360.0


@dataclass
class Drawing:
    """Shapes on a plane that grows downwards."""

    height: float  # of the plane
    about: str  # the drawing in words, for those who don't see it
    width: float = WIDTH  # of the plane
    shapes: list[str] = field(default_factory=list)  # SVG elements, the lowest first

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line."""
        ends = zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
        self.shapes.append(f"<line {_places(ends)} class={_quoted(kind)}/>")

    def circle(self, x: float, y: float, radius: float, kind: str, title: str = "") -> None:
        """A circle; the title appears where a pointer rests on it."""
        places = _places(zip(("cx", "cy", "r"), (x, y, radius), strict=True))
        self._shape("circle", places, kind, title)

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, title: str = ""
    ) -> None:
        """A rectangle with slightly rounded corners."""
        names = ("x", "y", "width", "height", "rx")
        places = _places(zip(names, (x, y, width, height, 2.5), strict=True))
        self._shape("rect", places, kind, title)

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Words on one line; ``anchor`` is start, middle or end."""
        places = _places(zip(("x", "y"), (x, y), strict=True))
        self.shapes.append(
            f"<text {places} text-anchor={_quoted(anchor)} class={_quoted(kind)}>"
            f"{escape(words)}</text>"
        )

    def cross(self, x: float, y: float, size: float, kind: str) -> None:
        """Two lines through a place."""
        self.line(x - size, y - size, x + size, y + size, kind)
        self.line(x - size, y + size, x + size, y - size, kind)

    def _shape(self, name: str, places: str, kind: str, title: str) -> None:
        inner = f"<title>{escape(title)}</title>" if title else ""
        self.shapes.append(f"<{name} {places} class={_quoted(kind)}>{inner}</{name}>")

    @property
    def content(self) -> Markup:
        """The shapes, for an SVG element around them."""
        return Markup("\n").join(map(Markup, self.shapes))

    def __html__(self) -> str:
        """The element, to be put into a page."""
        size = f"0 0 {self.width:g} {self.height:g}"
        opening = f'<svg class="drawing" viewBox="{size}" role="img" aria-label='
        return f"{opening}{_quoted(self.about)}>\n{self.content}\n</svg>"


def beside(drawings: Mapping[str, Drawing], gap: float = 36.0) -> Drawing:
    """Several drawings in one, from left to right, each under its title."""
    title = 30.0
    width = sum(drawing.width for drawing in drawings.values()) + gap * (len(drawings) - 1)
    height = title + max(drawing.height for drawing in drawings.values())
    about = " ".join(f"{words}: {drawing.about}" for words, drawing in drawings.items())
    whole = Drawing(height, about, ceil(width))
    at = 0.0
    for words, drawing in drawings.items():
        whole.text(at, 14, words, "strong")
        place = f"translate({at:g} {title:g})"
        whole.shapes += [f'<g transform="{place}">', *drawing.shapes, "</g>"]
        at += drawing.width + gap
    return whole


def _places(values: Iterable[tuple[str, float]]) -> str:
    return " ".join(f'{name}="{value:.5g}"' for name, value in values)


def _quoted(words: str) -> str:
    return f'"{escape(words)}"'
