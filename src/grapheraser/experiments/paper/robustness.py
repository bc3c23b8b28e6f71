"""A growing share of nodes forgotten, uniformly or not (figure:unlearning_adaptive)."""

from __future__ import annotations

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    judged,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.f1_curves import (
    DROP,
    along,
    curve_figure,
    curve_rows,
    curve_table,
    little_lost,
    percent,
)
from grapheraser.experiments.framework.means import Mean
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.shared_cells import every_cell, f1_means, utility_cells
from grapheraser.experiments.paper import published as paper

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
NAMES = {"uniform": "uniform", "large": "non-uniform"}


def _groups(options: Options) -> dict[tuple[str, str, str, float], list[Cell]]:
    """The paper's recommended partition for each model."""

    def group(dataset: str, model: str, where: str, share: float) -> list[Cell]:
        forget = {"what": "nodes", "share": share, "where": where} if share else None
        return utility_cells(options, dataset, model, options.recommended(model), forget=forget)

    return {
        (dataset, model, name, share): group(dataset, model, where, share)
        for dataset, model in options.pairs
        for where, name in NAMES.items()
        for share in SHARES
    }


def cells(options: Options) -> list[Cell]:
    """Every share, uniform and not."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 by share; uniform is from all shards, non-uniform from the larger half of them."""
    found = f1_means(results, _groups(options), options.learned)
    return Summary(
        curve_rows(found, "deleted"),
        [
            curve_table(
                found,
                "Micro F1 after a share of the training nodes was forgotten (LBAggr)",
                tell=percent,
                note="BLPA for GCN, BEKM for the others. Non-uniform: all from the larger half "
                "of the shards.",
            )
        ],
        _claims(options, found),
        lambda: curve_figure(found, "forgotten nodes (%)", "micro F1", scale=100),
    )


def _claims(options: Options, found: dict[tuple[str, str, str, float], Mean]) -> list[Claim]:
    drops, apart = [], []
    for dataset, model in options.pairs:
        for name in NAMES.values():
            curve = dict(along(found, dataset, model, name))
            if 0.0 in curve and 0.1 in curve:
                drops.append(curve[0.0].mean - curve[0.1].mean)
        for share in SHARES[1:]:
            both = [found.get((dataset, model, name, share)) for name in NAMES.values()]
            if both[0] is not None and both[1] is not None:
                apart.append(both[0].mean - both[1].mean)
    claims = little_lost("Forgetting up to 10 % of the nodes hardly changes F1.", drops)
    start, end = (found.get(("pubmed", "gcn", "uniform", share)) for share in (0.0, 0.5))
    if start is not None and end is not None:
        was, became = paper.ROBUSTNESS_PUBMED_GCN
        drop = start.mean - end.mean
        claims.append(
            Claim(
                "Forgetting half of the nodes can cost utility (GCN on Pubmed, 0.72 to 0.56).",
                judged(int(drop > (was - became) / 2), 1),
                f"Here from {start.mean:.3f} to {end.mean:.3f}.",
            )
        )
    return claims + judged_claim(
        "It matters little whether the requests are uniform or not.",
        [abs(gap) <= DROP for gap in apart],
        lambda count: (
            f"Within {DROP} in {count}; uniform is {sum(apart) / len(apart):+.3f} on average, at "
            f"most {max(map(abs, apart)):.3f} apart."
        ),
    )


register(
    Experiment(
        "robustness",
        "Forgetting a growing share of the nodes",
        "figure:unlearning_adaptive",
        "Cora and Citeseer 1 min a run, with Pubmed 4 min",
        cells,
        summarise,
        datasets=("citeseer", "cora", "pubmed"),
        one_run_in=3,
    )
)
