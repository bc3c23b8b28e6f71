"""Cells of link prediction, and the choice of an encoder's options by its validation edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grapheraser.experiments.framework.cell import Cell

CLOSED, ENCODERS = "closed-form", ("gcn", "sage")
RATES, DROPOUTS = (0.001, 0.003, 0.01), (0.0, 0.5)


def link_cells(
    data: Mapping[str, Any],
    model: str,
    epochs: int,
    *,
    forget: Mapping[str, Any] | None = None,
    dropouts: Sequence[float] = DROPOUTS,
) -> list[Cell]:
    """The cells of a model: of an encoder, one for each choice of its options.

    Args:
        data: ``dataset`` and ``seed``, and what else says which graph it is.
        model: `CLOSED`, another kind of members, or one of `ENCODERS`.
        epochs: of training, at the most.
        forget: ``what`` (nodes or edges) and the ``share`` of them; None for nothing.
        dropouts: that an encoder chooses from.
    """
    common = {**data, "model": model} | ({} if forget is None else {"forget": dict(forget)})
    if model == CLOSED:
        return [Cell.of("links", **common)]
    if model not in ENCODERS:
        return [Cell.of("links", **common, epochs=epochs)]
    return [
        Cell.of("links", **common, lr=lr, dropout=dropout, epochs=epochs)
        for lr in RATES
        for dropout in dropouts
    ]


def chosen(values: Mapping[Cell, Mapping[str, Any]]) -> Cell:
    """The cell with the best AUC on validation edges; there is one where nothing is chosen."""
    return max(values, key=lambda cell: float(values[cell].get("validation_auc", 0.0)))
