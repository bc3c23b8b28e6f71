"""Pictures in few colours keep the colours that tell things apart."""

from __future__ import annotations

import io

import numpy as np
import pytest

from grapheraser_lab.figures.bars import draw_sizes
from grapheraser_lab.framework.study import fewer_colours

Image = pytest.importorskip("PIL.Image")


def test_a_rare_colour_beside_many_common_ones_stays_what_it_is() -> None:
    rng = np.random.Generator(np.random.PCG64(0))
    pixels = np.repeat(rng.integers(0, 256, size=(200, 200, 1), dtype=np.uint8), 3, axis=2)
    marks = {(10, 10): (184, 134, 11), (40, 40): (224, 123, 57), (70, 70): (45, 111, 220)}
    for (x, y), colour in marks.items():
        pixels[x : x + 4, y : y + 4] = colour
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="png")
    few = np.asarray(Image.open(io.BytesIO(fewer_colours(buffer.getvalue()))).convert("RGB"))
    for (x, y), colour in marks.items():
        assert np.abs(few[x + 1, y + 1].astype(int) - colour).max() < 12
    assert len(np.unique(few.reshape(-1, 3), axis=0)) <= 128


def test_shards_are_counted_in_whole_numbers() -> None:
    pytest.importorskip("matplotlib")
    figure = draw_sizes({"cora, blpa": ([3, 2, 1], 3)})
    figure.canvas.draw()
    ticks = figure.axes[0].get_xticks()
    assert all(tick == round(tick) for tick in ticks)
