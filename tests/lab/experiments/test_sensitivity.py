"""Every setting has a source, and every variation is another model."""

from __future__ import annotations

from dataclasses import fields

import pytest

from grapheraser.models import PRESETS, ModelSpec
from grapheraser_lab.experiments import sensitivity
from grapheraser_lab.experiments.catalogue import EXPERIMENTS, Options
from grapheraser_lab.experiments.datasets import counted
from grapheraser_lab.experiments.guideline import advice
from grapheraser_lab.experiments.settings import CODE, OURS, TEXT, model_rows, settings_table
from grapheraser_lab.framework.means import Mean, mean_of
from grapheraser_lab.framework.resolve import model_of


def fig(value: float) -> Mean:
    found = mean_of([value, value + 0.001, value - 0.001], 500)
    assert found is not None
    return found


def test_every_option_of_every_paper_preset_has_a_source() -> None:
    rows = {(model, name): (value, source) for model, name, value, source, _ in model_rows()}
    assert {source for _, source in rows.values()} <= {TEXT, CODE, OURS}
    for preset, spec in PRESETS.items():
        kind, _, variant = preset.partition(":")
        if variant != "paper":
            continue
        for field in fields(ModelSpec):
            told = rows.get((kind, field.name))
            if told is not None:
                value = spec.depth if field.name == "layers" else getattr(spec, field.name)
                assert told[0] == str(value)
            elif field.name != "kind":  # no other model may use what only some models have
                assert getattr(spec, field.name) == field.default, (preset, field.name)


def test_the_table_names_what_a_reader_would_ask_for() -> None:
    rows = {row[:2]: row[2:4] for row in settings_table().rows}
    assert rows["gat", "attention_dropout"] == ("0.6", CODE)
    assert rows["mlp", "activation"] == ("none", CODE)
    assert rows["lbaggr", "rate"] == ("0.1", OURS)
    assert rows["data", "features"][1] == OURS
    assert "64" in str(settings_table())


def test_every_variation_is_a_model_that_differs_from_its_preset() -> None:
    cells = EXPERIMENTS.get("sensitivity").cells(Options(datasets=("cora",), runs=1))
    models = {str(cell["model"]) for cell in cells}
    varied = {text for text in models if "(" in text}
    assert len(varied) == sum(bool(v.options) for v in sensitivity.VARIATIONS.values())
    for text in varied:
        assert model_of(text) != model_of(text.partition("(")[0])
    assert any(cell.config.get("features") == "rows" for cell in cells)


@pytest.mark.parametrize(
    ("model", "gap", "advised"),
    [("gcn", 0.01, "random"), ("gcn", 0.2, "blpa"), ("sage", 0.2, "bekm")],
)
def test_the_guideline_is_the_papers(model: str, gap: float, advised: str) -> None:
    assert advice(model, gap) == advised


@pytest.mark.parametrize(
    ("edges", "published", "how"),
    [
        (5278, 5429, "each link once, doubles and loops included"),
        (247962, 495924, "both directions"),
        (100, 1000, "otherwise"),
    ],
)
def test_the_papers_way_to_count_edges_is_found(edges: int, published: int, how: str) -> None:
    assert counted(edges, 2 * edges, published) == how
