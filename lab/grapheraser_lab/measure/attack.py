"""Kind ``attack``: guess who was deleted from two versions of a run, scenario by scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.audit.attacks.answers import Answers, state_of
from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.shadow import KEPT, RECUT, Observations, fitted, observe, resplit
from grapheraser.errors import GraphEraserError
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import derive
from grapheraser_lab.framework.cell import KINDS, Kind
from grapheraser_lab.framework.resolve import aggregator_of, model_of, partitioner_of
from grapheraser_lab.measure.inputs import graph_of


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Every scenario on the same two runs, the attacker's own and the one under attack."""
    graph, seed = graph_of(config), int(config["seed"])
    params = {
        "model": model_of(config["model"]),
        "partition": partitioner_of(config["partition"]),
        "aggregation": aggregator_of(config["aggregation"]),
        "num_shards": config["num_shards"],
        "epochs": config["epochs"],
        "seed": seed,
        "device": config.get("device", "cpu"),
        "executor": LocalExecutor(workers=1),
    }
    own = resplit(graph, derive(seed, "attack", "split"))
    seen = [
        _looks(config["looks"], fitted(params, on, run_seed), on, derive(seed, "attack", name))
        for name, on, run_seed in (
            ("shadow", own, derive(seed, "attack", "own") >> 1),
            ("target", graph, seed),
        )
    ]
    found = {column: _attacked(seen[0][column], seen[1][column], seed) for column in seen[0]}
    if config["partition"] == "hash":
        check_same(config["looks"], found)
    return found


def check_same(looks: Mapping[str, Mapping[str, Any]], found: Mapping[str, Any]) -> None:
    """Refuse figures that differ where both models have the same bits.

    Under a partition that depends on no data, the same requests leave the same model whether the
    partition is kept or made again: an attack that tells them apart has measured something else.
    """
    by_request: dict[tuple[int, int], dict[str, float]] = {}
    for column, look in looks.items():
        if look["scenario"] in (KEPT, RECUT):
            size = look["nodes_per_request"], look["requests"]
            auc = float(found[column]["rates"]["auc"]["value"])
            by_request.setdefault(size, {})[column] = auc
    for same in by_request.values():
        if len(set(same.values())) > 1:
            raise GraphEraserError(f"bit-identical models have different AUCs: {same}.")


def _looks(
    looks: Mapping[str, Mapping[str, Any]], eraser: GraphEraser, graph: Graph, seed: int
) -> dict[str, Observations]:
    """Return what is seen of one run in each scenario."""
    known = Answers(state_of(eraser), graph)
    return {
        column: observe(
            eraser,
            graph,
            look["scenario"],
            requests=look["requests"],
            nodes_per_request=look["nodes_per_request"],
            seed=seed,
            known=known,
        )
        for column, look in looks.items()
    }


def _attacked(shadow: Observations, target: Observations, seed: int) -> dict[str, Any]:
    moved = np.linalg.norm(target.before - target.after, axis=1)
    return {
        **attack(shadow, target, seed=seed).to_dict(),
        "moved_members": float(moved[target.member].mean()),
        "moved_others": float(moved[~target.member].mean()),
    }


KINDS.add("attack", Kind(measure, trains=True))
