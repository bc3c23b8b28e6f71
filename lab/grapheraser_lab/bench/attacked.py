"""A run under attack beside one of the attacker's own, for benchmarks that attack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grapheraser.audit.attacks.shadow import Observations, fitted, observe, parameters, resplit
from grapheraser.datasets import default_shards
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import derive


@dataclass(frozen=True, eq=False)
class Attacked:
    """Two runs of one configuration.

    Attributes:
        own: the attacker's, on other training nodes, from another seed.
        target: the one under attack.
        name: of the benchmark; what the attacker draws follows from it.
        seed: of everything.
    """

    own: GraphEraser
    target: GraphEraser
    name: str
    seed: int

    @classmethod
    def fit(
        cls,
        graph: Graph,
        options: Mapping[str, Any],
        *,
        dataset: str,
        epochs: int,
        name: str,
        seed: int,
    ) -> Attacked:
        """Fit both, with the paper's number of shards for the data set."""
        target = run_under_attack(graph, options, dataset=dataset, epochs=epochs, seed=seed)
        split = resplit(graph, derive(seed, name))
        return cls(fitted(parameters(target), split, seed + 1), target, name, seed)

    def seen(
        self, how: str, *, requests: int, nodes_per_request: int = 1
    ) -> tuple[Observations, Observations]:
        """Return what the attacker sees of both runs around such requests."""

        def of(run: GraphEraser, who: str) -> Observations:
            return observe(
                run,
                run.graph_,
                how,
                requests=requests,
                nodes_per_request=nodes_per_request,
                seed=derive(self.seed, self.name, who),
            )

        return of(self.own, "shadow"), of(self.target, "target")


def run_under_attack(
    graph: Graph, options: Mapping[str, Any], *, dataset: str, epochs: int, seed: int
) -> GraphEraser:
    """A fitted run, trained in this process."""
    shared = {"num_shards": default_shards(dataset), "epochs": epochs, "seed": seed}
    one = {"executor": LocalExecutor(workers=1)}
    return GraphEraser(**{**shared, **one, **options}).fit(graph)
