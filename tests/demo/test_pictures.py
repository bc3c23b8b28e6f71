"""The drawings show what happened, in form and words and not in colour alone."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from grapheraser.demo.page import (
    draw_around,
    draw_f1,
    draw_moves,
    draw_shard,
    draw_shards,
    draw_times,
)
from grapheraser.demo.story import DemoResult


def test_the_retrained_shard_alone_is_lit(result: DemoResult) -> None:
    drawing = draw_shards(result.scene, result.sizes)
    lit = [shape for shape in drawing.shapes if 'class="lit"' in shape and "<title>" in shape]
    assert len(lit) == 1
    assert f"shard {result.scene.shard}, " in lit[0]
    assert "retrained" in lit[0]
    assert drawing.content.count("same bytes as before") == 2
    assert f"retrained: shard {result.scene.shard}" in drawing.about


def test_every_node_of_the_shard_is_drawn_and_the_forgotten_one_is_a_hole(
    result: DemoResult,
) -> None:
    drawing = draw_shard(result.scene)
    dots = [shape for shape in drawing.shapes if shape.startswith("<circle")]
    assert len(dots) == len(result.scene.members)
    assert sum('class="hole"' in dot for dot in dots) == 1


def test_all_edges_of_a_shard_are_drawn_unless_they_would_hide_its_nodes(
    result: DemoResult,
) -> None:
    scene = result.scene
    own = [pair for pair in scene.inside.tolist() if scene.node in pair]
    assert 0 < len(own) < len(scene.inside) < 40
    assert draw_shard(scene).content.count('class="edge') == len(scene.inside)
    many = replace(scene, inside=np.tile(scene.inside, (4, 1)))
    assert draw_shard(many).content.count('class="edge') == 4 * len(own)
    assert draw_shard(many).content.count('class="edge gone"') == 4 * len(own)


def test_the_forgotten_node_and_its_edges_are_gone_afterwards(result: DemoResult) -> None:
    scene = result.scene
    before, after = (draw_around(scene, is_after=late) for late in (False, True))
    own = sum(scene.node in pair for pair in scene.edges.tolist())
    assert before.content.count('class="edge') == len(scene.edges)
    assert after.content.count('class="edge') == len(scene.edges) - own
    assert own == len(scene.near)
    assert 'class="hole"' in after.content
    assert 'class="hole"' not in before.content


def test_the_class_of_every_node_is_written_on_it_and_a_change_is_outlined(
    result: DemoResult,
) -> None:
    scene = result.scene
    turned = scene.before[0].argmax() + 1
    after = scene.before.copy()
    after[0] = np.eye(scene.before.shape[1])[turned % scene.before.shape[1]]
    drawing = draw_around(replace(scene, after=after), is_after=True)
    labels = re.findall(r'class="on-node">(\d+)</text>', drawing.content)
    assert [int(label) for label in labels] == after.argmax(axis=1).tolist()
    assert drawing.content.count(" changed") == 1
    assert "1 node drawn here changed class" in drawing.about


def test_every_neighbour_has_a_hollow_dot_before_and_a_full_one_after(result: DemoResult) -> None:
    scene = result.scene
    drawing = draw_moves(scene)
    for node, old, new in zip(scene.near.tolist(), scene.before, scene.after, strict=False):
        assert f">node {node}</text>" in drawing.content
        assert f"before: class {old.argmax()} with {old.max():.3f}" in drawing.content
        assert f"after: class {old.argmax()} with {new[old.argmax()]:.3f}" in drawing.content


def test_bars_of_f1_begin_at_nought(result: DemoResult) -> None:
    drawing = draw_f1(result)
    widths = [float(w) for w in re.findall(r'<rect x="0" [^>]* width="([\d.]+)"', drawing.content)]
    values = [result.f1[name] for name in ("before", "after", "scratch", "retrained")]
    assert np.allclose(np.array(widths) / 360, values, atol=1e-3)


def test_bars_of_times_are_logarithmic(result: DemoResult) -> None:
    seconds = {"node": 0.02, "edge": 0.01, "retrain": 0.2, "afresh": 2.0, "pyg": 20.0}
    drawing = draw_times(replace(result, seconds={**result.seconds, **seconds}))
    widths = [float(w) for w in re.findall(r'<rect x="0" [^>]* width="([\d.]+)"', drawing.content)]
    steps = np.diff([widths[0], *widths[2:]])
    assert np.allclose(steps, steps[0], rtol=1e-3), "each ten times the one before"
    assert "200 ms, 10x" in drawing.content
    assert "20.0 s, 1,000x" in drawing.content
