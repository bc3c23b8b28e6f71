"""The model of facts: rules with their counts, and the weights of a few numbers.

Rules are counted (see `rules`) and kept; what they, constants and likeness say of a fact (see
`evidence`) is pooled with weights that are learned anew with every request, from facts that are
held out (see `cases`), of which only those that the change has touched are judged again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble, FittedAggregator
from grapheraser.aggregation.form import MAX_WEIGHT, Form, Tensors, check_forms
from grapheraser.aggregation.log_linear import pool_weights
from grapheraser.errors import CorruptRunError, ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.formats.typed import facts_of
from grapheraser.links.facts.cases import CHOICES, Cases
from grapheraser.links.facts.evidence import WIDTH, scores_of
from grapheraser.links.facts.rows import Ids, Rows
from grapheraser.links.facts.rules import Rules, num_codes
from grapheraser.links.regression import Vector, solve

FACTS = "facts"
# Of all numbers (see `evidence`) those that have a weight, by name; chosen on validation data.
_NAMES = {
    "one step": 0,
    "two steps": 2,
    "two steps, all": 3,
    "three steps": 4,
    "constants": 6,
    "constants, all": 7,
    "likeness": 8,
    "likeness, all": 9,
}
_START = 0.3


@dataclass(frozen=True)
class FactModel:
    """The aggregator of facts, before it has seen a graph.

    Attributes:
        steps: of paths that rules follow, at the most; 1, 2 or 3.
        sample: how many facts to learn the weights from at the most.
    """

    steps: int = 2
    sample: int = 256
    name: str = FACTS

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the numbers that have a weight."""
        longer = ("two steps", "three steps")[self.steps - 1 :]
        return tuple(name for name in _NAMES if not name.startswith(longer))

    @property
    def columns(self) -> Ids:
        """Where they are among all numbers."""
        return np.array([_NAMES[name] for name in self.members], dtype=np.int64)

    def fit(self, ensemble: Ensemble) -> FittedFacts:
        """See `Aggregator`."""
        rows = _rows_of(ensemble.graph)
        return self._fitted(rows, Rules.of(rows, self.steps), Cases.none(rows), ensemble.seed)

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> FittedFacts:
        """See `Aggregator`."""
        assert isinstance(fitted, FittedFacts)
        before, rules = fitted.rows_of(change.before.graph), fitted.rules
        cases = Cases.none(before) if fitted.cases is None else fitted.cases
        was, now = before.among(change.changed), facts_of(ensemble.graph, change.changed)
        # Whoever goes takes all of their facts along: the other ends are touched.
        old, new = set(map(tuple, was.tolist())), set(map(tuple, now.tolist()))
        gone, come = _facts(old - new), _facts(new - old)
        rows = before
        if len(gone):
            entries = rows.entries(gone)
            rules = rules.without(rows, entries)
            after, places = rows.without(entries)
            cases = cases.without(rows, entries, after, places, ensemble.seed)
            rows = after
        if len(come):
            rows, places = rows.extended(come)
            entries = rows.entries(come)
            cases = cases.extended(rows, entries, places, ensemble.seed)
            rules = rules.extended(rows, entries)
        return self._fitted(rows, rules, cases, ensemble.seed)

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble) -> None:
        """See `ChecksTensors`."""
        types = ensemble.graph.types
        if types is None:
            raise CorruptRunError("a run of facts has a graph without types.")
        count = tensors["rules"].shape[1] if "rules" in tensors else 0
        forms = {
            "weights": Form(np.float64, (len(self.members),), 0.0, MAX_WEIGHT),
            "odds": Form(np.float64, (2,), -MAX_WEIGHT, MAX_WEIGHT),
            "rules": Form(np.int64, (3, count), 0, 2**62),
            "counts": Form(np.int64, (1,), 0, self.sample),
        }
        check_forms(tensors, forms, "a run of facts")
        keys, support, body = np.asarray(tensors["rules"]).astype(np.int64)
        steps = 2 * len(types.relations)
        known = (keys >= steps) & (keys < num_codes(steps, self.steps) * steps)
        if not (known & (support > 0) & (support <= body)).all() or (np.diff(keys) <= 0).any():
            raise CorruptRunError("a run of facts has rules that can't be.")

    def restore(self, tensors: Tensors) -> FittedFacts:
        """See `Aggregator`."""
        weights, odds = (np.asarray(tensors[n], dtype=np.float64) for n in ("weights", "odds"))
        rules = Rules(self.steps, *np.asarray(tensors["rules"], dtype=np.int64).copy())
        return FittedFacts(self, rules, weights, odds, np.asarray(tensors["counts"], np.int64))

    def _fitted(self, rows: Rows, rules: Rules, known: Cases, seed: int) -> FittedFacts:
        cases = known.of_rows(rows, self.sample, self.steps, seed)
        numbers, labels, columns = cases.numbers(rows.num_steps, rules), cases.labels, self.columns
        count, start = len(labels), np.full(len(columns), _START)
        flat = numbers.reshape(-1, WIDTH)
        each = [scores_of(flat, columns[k : k + 1], np.ones(1)) for k in range(len(columns))]
        evidence = np.stack(each).reshape(len(columns), count, CHOICES).transpose(1, 0, 2)
        weights = pool_weights(evidence, labels, start).members
        odds = np.zeros(2)
        if count:
            told = np.stack([np.ones(len(flat)), scores_of(flat, columns, weights)])
            truth = np.zeros((count, CHOICES))
            truth[np.arange(count), labels] = 1.0
            odds = solve(told, truth.reshape(-1))
        counts = np.array([count], dtype=np.int64)
        return FittedFacts(self, rules, weights, odds, counts, rows, cases)


def _rows_of(graph: Graph) -> Rows:
    types = graph.types
    assert types is not None
    return Rows.of(facts_of(graph), len(types.relations))


def _facts(found: set[tuple[Any, ...]]) -> Ids:
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class FittedFacts:
    """The rules and weights, and what learns them again cheaply.

    Attributes:
        model: what they were learned by.
        rules: with their counts.
        weights: float64, of each of the model's members.
        odds: offset and slope from a score to the logarithm of odds, among `CHOICES`.
        counts: int64 ``[1]``, how many facts the weights were learned from.
        rows, cases: follow from the graph; None after loading.
    """

    model: FactModel
    rules: Rules = field(repr=False)
    weights: Vector
    odds: Vector
    counts: Ids
    rows: Rows | None = field(default=None, repr=False)
    cases: Cases | None = field(default=None, repr=False)

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        """See `FittedAggregator`."""
        rules = np.stack([self.rules.keys, self.rules.support, self.rules.body])
        return {
            "weights": self.weights,
            "odds": self.odds,
            "rules": rules,
            "counts": self.counts,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for receipts about what was learned."""
        if self.counts[0]:
            return ()
        return ("no fact could be held out: the weights are those to begin with",)

    def rows_of(self, graph: Graph) -> Rows:
        """Return the facts in rows, of the graph that this was fitted on."""
        if self.rows is None:
            object.__setattr__(self, "rows", _rows_of(graph))
        assert self.rows is not None
        return self.rows

    def predict_proba(self, ensemble: Ensemble, positions: Ids) -> NoReturn:
        """Refuses: facts have heads, relations and tails."""
        del ensemble, positions
        raise ParameterError("a run of facts has nothing to say about nodes by themselves.")

    def explain(self, ensemble: Ensemble, position: int) -> NoReturn:
        """Refuses: a fact has two ends."""
        del ensemble, position
        raise ParameterError("a run of facts has nothing to say about one node by itself.")
