"""A planted class is learned, and gone once forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.audit.attacks.planted import plant_and_forget
from grapheraser.audit.attacks.shadow import parameters
from grapheraser.errors import ParameterError


def test_a_planted_class_is_learned_and_then_gone(demo: ge.Graph) -> None:
    params = parameters(ge.GraphEraser(partition="hash", num_shards=4, epochs=20))
    result = plant_and_forget(demo, params, share=0.4)
    assert result.before > 0
    assert result.passed
    assert result.after == result.never == 0


@pytest.mark.parametrize("share", [0, 1, -0.1])
def test_a_share_that_leaves_nobody_is_refused(small: ge.Graph, share: float) -> None:
    with pytest.raises(ParameterError, match="'share' of plant_and_forget"):
        plant_and_forget(small, parameters(ge.GraphEraser()), share=share)


@pytest.mark.data
def test_on_cora_the_planted_class_is_predicted_no_more(data_root: Path) -> None:
    graph = ge.load_dataset("cora", root=data_root)
    result = plant_and_forget(graph, parameters(ge.GraphEraser(partition="hash")))
    assert result.before > 100
    assert (result.after, result.never, result.identical) == (0, 0, True)
