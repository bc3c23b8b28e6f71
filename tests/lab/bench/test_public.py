"""Few labels against a plain PyG loop: one shard is as good, and both sides are in one report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser_lab.bench import public


@pytest.fixture(scope="module")
def few() -> ge.Graph:
    """The demo graph with ten labels per class."""
    demo = ge.load_dataset("demo")
    train = [
        demo.train_nodes[demo.labels(demo.train_nodes) == k][:10] for k in range(demo.num_classes)
    ]
    return ge.Graph.from_arrays(
        demo.x,
        demo.edges.T,
        demo.y,
        train=np.concatenate(train),
        test=demo.test_nodes,
        each_edge_once=True,
    )


@pytest.mark.long
def test_one_shard_that_holds_the_whole_graph_is_as_good_as_the_plain_loop(few: ge.Graph) -> None:
    seeds, epochs = range(3), 60

    def f1(context: str, seed: int) -> float:
        eraser = ge.GraphEraser(
            public.SPEC, num_shards=1, context=context, epochs=epochs, seed=seed
        )
        return eraser.fit(few).score(few.test_nodes)

    plain = np.mean([public.loop_f1(few, public.SPEC, epochs, seed) for seed in seeds])
    ours = np.mean([f1("all", seed) for seed in seeds])
    alone = np.mean([f1("none", seed) for seed in seeds])
    assert abs(ours - plain) < 0.02
    assert alone < plain - 0.03  # what labelled nodes alone are worth


def test_a_report_has_both_sides(
    few: ge.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public, "published", lambda name: few)
    monkeypatch.setattr(public, "EPOCHS", 1)
    one = {**public.ARGUMENTS[public.ONE], "epochs": 1}
    shards = {"num_shards": 2, "epochs": 1}
    monkeypatch.setattr(
        public,
        "ARGUMENTS",
        {**public.ARGUMENTS, public.ONE: one, public.DEFAULT: shards},
    )
    report = public.run(["cora"], seeds=1, folder=tmp_path)
    (row,) = report["rows"]
    assert list(row["f1"]) == [*public.SIDES, *public.LESS]
    table = public.markdown(report)
    assert "| cora | 1 |" in table
    assert all(side in table for side in public.SIDES)
