"""Figures without global state, and as text that a page can hold."""

from __future__ import annotations

import base64
import io
from typing import Any, Literal

from grapheraser.errors import MissingExtraError

INK, MUTED, ACCENT, ALERT = "#1f2430", "#6b7280", "#2563eb", "#c2410c"
_GRID = "#e5e7eb"


def new_figure(
    width: float, height: float, *, layout: Literal["constrained"] | None = "constrained"
) -> Any:
    """An empty matplotlib figure, in inches; ``layout=None`` where axes have fixed places."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError.of("matplotlib", "plots", "drawing") from None
    figure = Figure(figsize=(width, height), facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    return figure


def dress(axes: Any, title: str = "", *, grid: str = "y") -> None:
    """One look for all axes: no frame, a quiet grid, the title on the left."""
    axes.set_title(title, loc="left", color=INK, fontsize=10)
    axes.grid(axis=grid, color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=MUTED, length=0, labelsize=9)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)


def as_png(figure: Any, *, dpi: int = 150) -> bytes:
    """The figure as a PNG file, the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def as_img(figure: Any, alt: str, *, dpi: int = 150) -> str:
    """An HTML ``img`` with the picture inside it."""
    data = base64.b64encode(as_png(figure, dpi=dpi)).decode()
    return f'<img alt="{alt}" src="data:image/png;base64,{data}">'
