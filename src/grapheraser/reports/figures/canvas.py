"""Figures without global state, one look for all of them, and their files."""

from __future__ import annotations

import io
from typing import Any, Literal

from grapheraser.errors import MissingExtraError

INK, MUTED, ACCENT, ALERT = "#1f2430", "#6b7280", "#2563eb", "#c2410c"
_GRID = "#e5e7eb"
# Files that name their program or their date would change without the figure.
_UNDATED: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


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


def as_file(figure: Any, kind: str, *, dpi: int = 150) -> bytes:
    """The figure as a ``png``, ``svg`` or ``pdf`` file, the same bytes for the same figure."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "grapheraser", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=_UNDATED.get(kind))
    return buffer.getvalue()


def as_png(figure: Any, *, dpi: int = 150) -> bytes:
    """The figure as a PNG file."""
    return as_file(figure, "png", dpi=dpi)
