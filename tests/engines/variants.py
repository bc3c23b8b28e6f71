"""Models to hold the engines to: every preset, and options that no preset has."""

from __future__ import annotations

from dataclasses import replace

from grapheraser.models import PRESETS, ModelSpec

VARIANTS: dict[str, ModelSpec] = {
    **PRESETS,
    "gcn, no self-loops but bias": replace(PRESETS["gcn"], self_loops=False, hidden=20),
    "sage, elu": replace(PRESETS["sage"], activation="elu", hidden=33),
    "gat, no skip": replace(PRESETS["gat"], skip=False),
    "gat, three heads": replace(PRESETS["gat"], heads=3, hidden=5, self_loops=False, skip=False),
    "gat, three heads and a skip": replace(PRESETS["gat"], heads=3, hidden=5, self_loops=False),
    "gat, twenty heads": replace(PRESETS["gat"], heads=20, hidden=2, activation="none"),
    "gin, sum": replace(PRESETS["gin"], mean=False),
    "gin, sum and norm": replace(PRESETS["gin"], mean=False, batch_norm=True),
    "gin, mean and norm": replace(PRESETS["gin"], batch_norm=True),
    "gin, mean, norm and head": replace(PRESETS["gin"], batch_norm=True, linear_head=True),
    "gin, head without norm": replace(PRESETS["gin"], mean=False, linear_head=True),
    "mlp, two widths": replace(PRESETS["mlp"], second_hidden=20, activation="elu"),
}
# With other numbers of layers than the kernels of the engines are written for.
DEEP: dict[str, ModelSpec] = {
    **{f"{name}, three layers": replace(PRESETS[name], layers=3) for name in ("gcn", "sage")},
    **{f"{name}, one layer": replace(PRESETS[name], layers=1) for name in ("gcn", "sage", "gat")},
    "gcn, four layers of eight": replace(PRESETS["gcn"], layers=4, hidden=8, self_loops=False),
    "gat, three layers": replace(PRESETS["gat"], layers=3, heads=3, hidden=5),
    "gat, three layers without a skip": replace(PRESETS["gat"], layers=3, skip=False),
    "gin, three layers": replace(PRESETS["gin"], layers=3),
    "gin, one layer with a head": replace(PRESETS["gin:paper"], layers=1),
    "gin, three layers, sum, norm and head": replace(PRESETS["gin:paper"], layers=3),
    "mlp, four layers": replace(PRESETS["mlp"], layers=4, second_hidden=20, activation="elu"),
    **{
        f"{name}, batch norm": replace(PRESETS[name], layers=3, hidden=6, batch_norm=True)
        for name in ("gcn", "sage", "gat")
    },
    **{
        f"{name}, layer norm": replace(PRESETS[name], layers=3, hidden=6, layer_norm=True)
        for name in ("gcn", "sage", "gat")
    },
    "gcn, two layers, residual": replace(PRESETS["gcn"], skip=True, bias=False),
    "gcn, residual and norm": replace(PRESETS["gcn"], layers=4, skip=True, layer_norm=True),
    "gin, layer norm and head": replace(PRESETS["gin"], layer_norm=True, linear_head=True),
    "mlp, one layer": replace(PRESETS["mlp"], layers=1),
}
