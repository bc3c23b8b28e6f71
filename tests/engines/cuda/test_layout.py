"""What the CUDA engine promises without a GPU: its layouts, its errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from grapheraser.engines import ShardTask, TrainingConfig
from grapheraser.engines.cuda import check_model, train_shards
from grapheraser.engines.cuda.layout import layout_of
from grapheraser.engines.cuda.stack import SHORT, column_tile, stack_of
from grapheraser.errors import ParameterError
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.models import PRESETS, CustomModel, architecture_of, initial_weights
from tests.engines.variants import VARIANTS


def shard_task(n: int, seed: int, num_features: int = 30) -> ShardTask:
    rng = np.random.default_rng(seed)
    x = rng.random((n, num_features)) * (rng.random((n, num_features)) < 0.3)
    edges = rng.integers(0, n, size=(2, 2 * n))
    edges = edges[:, edges[0] != edges[1]]
    y = rng.integers(0, 3, size=n)
    return ShardTask(seed, Graph.from_arrays(x, edges, y, num_classes=3), seed)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_parameter_has_a_place_of_its_own(name: str) -> None:
    spec = VARIANTS[name]
    layout = layout_of(spec, 5)
    shapes = architecture_of(spec, 7, 5).parameter_shapes
    names = [*layout.inputs.names, *(n for s in layout.segments.values() for n in s.names)]
    assert sorted(names) == sorted(shapes) or (not spec.bias and set(shapes) < set(names))
    start = initial_weights(spec, 7, 5, np.arange(7), key=3)
    flat = np.full(layout.size, np.nan, dtype=np.float32)
    for short, segment in layout.segments.items():
        if segment.names[0] in start:
            at = layout.offset(short)
            segment.write(start, flat[at : at + segment.size])
            back = segment.read(flat[at : at + segment.size], shapes)
            for tensor in segment.names:
                np.testing.assert_array_equal(back[tensor], start[tensor])


@pytest.mark.parametrize("classes", [2, 5, 17, 40])
def test_widths_are_powers_of_two(classes: int) -> None:
    for spec in PRESETS.values():
        layout = layout_of(spec, classes)
        axes = (layout.hidden, layout.classes, layout.inputs.out)
        widths = {a.width for a in (*axes, *(s.out for s in layout.segments.values()))}
        assert all(width >= 16 and width & (width - 1) == 0 for width in widths)


def test_a_row_without_a_label_has_no_share_in_the_loss() -> None:
    tasks = [shard_task(n, seed) for n, seed in ((6, 1), (4, 2))]
    y = np.array([0, UNLABELLED, 1, 2, UNLABELLED, 0])
    tasks[0] = replace(tasks[0], graph=tasks[0].graph.with_fields(y=y))
    arrays = stack_of(layout_of(PRESETS["gcn"], 3), tasks, np.float64).arrays
    quarter = 0.25
    expected = [quarter, 0, quarter, quarter, 0, quarter, *[quarter] * 4]
    np.testing.assert_array_equal(arrays["loss_shares"], expected)
    np.testing.assert_array_equal(arrays["shares"], [1 / 6] * 6 + [quarter] * 4)


def test_a_stack_is_the_shards_end_to_end() -> None:
    tasks = [shard_task(n, seed) for n, seed in ((20, 1), (3, 2), (33, 3))]
    layout = layout_of(PRESETS["gcn"], 3)
    both = stack_of(layout, tasks, np.float32)
    first_row = first_column = first_entry = 0
    for number, task in enumerate(tasks):
        alone = stack_of(layout, [task], np.float32).arrays
        rows, columns = task.graph.num_nodes, len(both.columns[number])
        entries = slice(first_entry, first_entry + task.graph.x.nnz)
        arrays = both.arrays
        of_row = slice(first_row, first_row + rows)
        of_column = slice(first_column, first_column + columns)
        np.testing.assert_array_equal(arrays["row_shard"][of_row], number)
        np.testing.assert_array_equal(arrays["labels"][of_row], alone["labels"])
        np.testing.assert_array_equal(arrays["features"][of_column], alone["features"])
        np.testing.assert_array_equal(
            arrays["x_columns"][entries], alone["x_columns"] + first_column
        )
        np.testing.assert_array_equal(arrays["c_rows"][entries], alone["c_rows"] + first_row)
        np.testing.assert_array_equal(arrays["c_values"][entries], alone["c_values"])
        first_row, first_column = first_row + rows, first_column + columns
        first_entry += task.graph.x.nnz


def test_blocks_cover_every_column_once_and_never_two_shards() -> None:
    tasks = [shard_task(n, seed) for n, seed in ((40, 1), (5, 2), (33, 3))]
    layout = layout_of(PRESETS["sage"], 3)
    stack = stack_of(layout, tasks, np.float32)
    blocks, counts = stack.arrays["blocks"], np.diff(stack.arrays["c_indptr"])
    covered = np.concatenate([np.arange(start, end) for start, end in blocks])
    np.testing.assert_array_equal(np.sort(covered), np.arange(len(counts)))
    shard = stack.arrays["column_shard"]
    for number, (start, end) in enumerate(blocks):
        assert (shard[start:end] == shard[start]).all()
        if number < stack.num_long:
            assert end == start + 1
            assert counts[start] > SHORT
        else:
            assert end - start <= column_tile(layout.inputs.out.width)[1]
            assert (counts[start:end] <= SHORT).all()


def test_a_model_that_is_too_wide_is_an_error() -> None:
    with pytest.raises(ParameterError, match="more than its"):
        check_model(replace(PRESETS["gin"], hidden=300), 5)


def test_a_users_own_module_is_an_error() -> None:
    with pytest.raises(ParameterError, match="built-in models only"):
        check_model(CustomModel(torch.nn.Linear), 5)


def test_shards_of_two_schemas_are_an_error() -> None:
    tasks = [shard_task(5, 1), shard_task(5, 2, num_features=31)]
    with pytest.raises(ParameterError, match="share features and classes"):
        train_shards(tasks, TrainingConfig(PRESETS["gcn"]))


def test_no_tasks_no_weights() -> None:
    assert train_shards([], TrainingConfig(PRESETS["gcn"])) == []
