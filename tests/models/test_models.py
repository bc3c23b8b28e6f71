"""Models as values: presets, names, checks, and what may stand in for a name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from grapheraser.errors import ParameterError
from grapheraser.models import (
    KINDS,
    PRESETS,
    CustomModel,
    ModelSpec,
    resolve_model,
)
from grapheraser.models.modules import build_module
from tests.engines.variants import DEEP
from tests.strategies import TwoHops

EVERY = PRESETS | DEEP


def test_every_kind_has_a_preset_and_a_paper_variant() -> None:
    assert set(PRESETS) == {*KINDS, *(f"{kind}:paper" for kind in KINDS)}
    for name, spec in PRESETS.items():
        assert spec.kind == name.partition(":")[0]
        assert spec.name == name
        assert resolve_model(name) is spec


def test_the_paper_variants_are_those_of_the_papers_code() -> None:
    assert not PRESETS["gcn:paper"].self_loops
    assert PRESETS["gcn:paper"].hidden == 16
    assert PRESETS["sage:paper"].hidden == 256
    gat = PRESETS["gat:paper"]
    assert (gat.hidden, gat.heads, gat.attention_dropout, gat.skip) == (8, 8, 0.6, False)
    gin = PRESETS["gin:paper"]
    assert (gin.linear_head, gin.batch_norm, gin.mean) == (True, True, False)
    assert (PRESETS["mlp:paper"].hidden, PRESETS["mlp:paper"].second_hidden) == (250, 100)
    for name in PRESETS:
        assert (PRESETS[name].lr, PRESETS[name].weight_decay) == (0.01, 0.001)


@pytest.mark.parametrize("name", PRESETS)
def test_a_spec_survives_plain_values(name: str) -> None:
    assert ModelSpec(**PRESETS[name].to_dict()) == PRESETS[name]


def test_the_presets_suit_graphs_with_hubs() -> None:
    """A sum over thousands of neighbours, or their mixture alone, drowns a node's own features."""
    assert PRESETS["gin"].mean
    assert not PRESETS["gin"].batch_norm
    assert PRESETS["gat"].skip


def test_the_usual_number_of_layers_is_the_same_model() -> None:
    assert ModelSpec("gcn", hidden=16, layers=2) == PRESETS["gcn"]
    assert ModelSpec("mlp", layers=3) == PRESETS["mlp"]
    assert (PRESETS["gcn"].depth, PRESETS["mlp"].depth) == (2, 3)
    assert ModelSpec("gcn", hidden=16, layers=3).name == "gcn(layers=3)"


def test_a_spec_of_ones_own_says_what_differs() -> None:
    assert ModelSpec("gcn", hidden=8, dropout=0.1).name == "gcn(hidden=8, dropout=0.1)"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "transformer"),
        ("hidden", 0),
        ("hidden", 2.5),
        ("hidden", True),
        ("second_hidden", 0),
        ("heads", 0),
        ("layers", 0),
        ("layers", True),
        ("activation", "tanh"),
        ("dropout", 1.0),
        ("input_dropout", -0.1),
        ("attention_dropout", 2.0),
        ("lr", 0.0),
        ("weight_decay", -1.0),
        ("batch_norm", 1),
        ("layer_norm", 1),
        ("mean", 1),
        ("skip", "yes"),
    ],
)
def test_a_bad_field_is_told_by_name(field: str, value: Any) -> None:
    fields = {"kind": "gcn", field: value}
    with pytest.raises(ParameterError, match=f"'{field}' of ModelSpec must be .* Got {value!r}"):
        ModelSpec(**fields)


def test_a_custom_model_checks_its_optimiser() -> None:
    with pytest.raises(ParameterError, match=r"'lr' of CustomModel must be .* Got 0"):
        CustomModel(TwoHops, lr=0)


@pytest.mark.parametrize("hops", [-1, 1.5, True, "two", None])
def test_a_custom_model_checks_its_hops(hops: Any) -> None:
    with pytest.raises(ParameterError, match=r"'hops' of CustomModel must be .* Got"):
        CustomModel(TwoHops, hops=hops)


def test_hops_are_a_number_or_a_word() -> None:
    assert [CustomModel(TwoHops, hops=h).hops for h in ("auto", "all", 0)] == ["auto", "all", 0]
    assert type(CustomModel(TwoHops, hops=np.int64(2)).hops) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EVERY)
def test_a_node_looks_as_far_as_is_declared(name: str) -> None:
    """On a path, a change at one end is seen by exactly the nodes within that many hops."""
    spec, n = EVERY[name], 6
    edges = torch.tensor([[*range(5), *range(1, 6)], [*range(1, 6), *range(5)]])
    x = torch.rand(n, 4, generator=torch.Generator().manual_seed(0))
    module = build_module(spec, 4, 3).eval()
    changed = x.clone()
    changed[0] += 1
    with torch.no_grad():
        differs = (module(x, edges) != module(changed, edges)).any(dim=1)
    hops = spec.hops
    assert differs[: hops + 1].any()
    assert not differs[hops + 1 :].any()


def test_an_unknown_name_is_answered_with_the_choices() -> None:
    with pytest.raises(ParameterError, match=r"unknown model 'transformer'\. Choose from: gcn, "):
        resolve_model("transformer")


def test_a_factory_becomes_a_custom_model() -> None:
    model = resolve_model(TwoHops)
    assert isinstance(model, CustomModel)
    assert model.name == "tests.modules:TwoHops"
    assert resolve_model(model) is model


def test_a_module_instead_of_a_factory_is_refused() -> None:
    with pytest.raises(ParameterError, match="must be a factory, not a module"):
        resolve_model(TwoHops(2, 2))


def test_anything_else_is_refused() -> None:
    with pytest.raises(ParameterError, match="Got 7"):
        resolve_model(7)  # type: ignore[arg-type]
