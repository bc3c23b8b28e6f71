"""The paper's figures, spot-checked against its tables."""

from __future__ import annotations

from grapheraser_lab.framework import published as paper


def test_every_table_is_complete() -> None:
    pairs = len(paper.DATASETS) * len(paper.MODELS)
    assert len(paper.UTILITY.values) == pairs * 10
    assert len(paper.EDGE_UTILITY.values) == pairs * 4
    assert len(paper.PARTITIONERS.values) == pairs * 5
    assert len(paper.MLP) == len(paper.DATASETS) * 5
    assert len(paper.SAMPLES) == pairs * 3
    assert len(paper.SECONDS) == len(paper.DATASETS) * 9
    assert len(paper.ATTACK) == pairs


def test_figures_are_the_papers() -> None:
    assert paper.UTILITY.get("cora", "gcn", "blpa/learned") == (0.676, 0.004)
    assert paper.UTILITY.get("physics", "sage", "random/majority") == (0.717, 0.002)
    assert paper.EDGE_UTILITY.get("citeseer", "sage", "blpa") == (0.680, 0.062)
    assert paper.PARTITIONERS.get("pubmed", "gcn", "bekm-hungarian") == (0.628, 0.034)
    assert paper.MLP["citeseer", "mlp"] == (0.587, 0.029)
    assert paper.SAMPLES["physics", "gin", "1000"] == (0.91, 0.03)
    assert paper.SECONDS["physics", "bekm-hungarian"] == 948_790
    assert paper.SECONDS["cora", "predict-shards"] == 0.003
    assert paper.ATTACK["cs", "gcn"] == (0.520, 0.511)


def test_the_gain_that_the_text_names_follows_from_the_table() -> None:
    learned = paper.UTILITY.get("cora", "gcn", "blpa/learned")
    majority = paper.UTILITY.get("cora", "gcn", "blpa/majority")
    assert learned is not None
    assert majority is not None
    assert round(learned.mean - majority.mean, 3) == 0.357


def test_the_mlp_table_repeats_scratch() -> None:
    for dataset in paper.DATASETS:
        for model in paper.MODELS:
            assert paper.MLP[dataset, model] == paper.UTILITY.get(dataset, model, "scratch")
