"""Figures without global state, and as text that a page can hold."""

from __future__ import annotations

import base64
import io
from typing import Any

from grapheraser.errors import MissingExtraError


def new_figure(width: float, height: float, *, layout: str | None = "constrained") -> Any:
    """An empty matplotlib figure, in inches; ``layout=None`` where axes have fixed places."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError.of("matplotlib", "plots", "drawing") from None
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def tidy(figure: Any) -> Any:
    """Take the frame off every axis of a figure."""
    for axes in figure.axes:
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(length=0)
    return figure


def as_png(figure: Any, *, dpi: int = 150) -> bytes:
    """The figure as a PNG file, the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def as_img(figure: Any, alt: str, *, dpi: int = 150) -> str:
    """An HTML ``img`` with the picture inside it."""
    data = base64.b64encode(as_png(figure, dpi=dpi)).decode()
    return f'<img alt="{alt}" src="data:image/png;base64,{data}">'
