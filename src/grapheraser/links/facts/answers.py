"""Questions about facts: how likely, the best tails or heads, how good, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import whole
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.kernels.elementary import logarithm
from grapheraser.kernels.sets import ranks
from grapheraser.links.facts.cases import CHOICES, Case, key_of, numbers_of
from grapheraser.links.facts.evidence import (
    DAMPING,
    MAX_ALIKE,
    WIDTH,
    add_constants,
    add_likeness,
    add_paths,
    count_constant,
    is_asked,
    likeness,
    scores_of,
    shared_facts,
    strength,
    strengths_of,
)
from grapheraser.links.facts.model import FittedFacts
from grapheraser.links.facts.rows import Ids, Rows, entry, span
from grapheraser.links.facts.rules import num_codes
from grapheraser.links.facts.walks import all_but, paths_between, paths_from
from grapheraser.links.rank import Ranked
from grapheraser.links.regression import Vector, logistic

HITS = (1, 3, 10)
_NONE = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class FactScore:
    """Result of `LinkEraser.score` on facts; both ends of each are looked for.

    Attributes:
        mrr: mean of 1 / rank among all entities that make no known fact; ties count half.
        hits: by K, the share of ranks up to K.
        facts: how many were scored.
    """

    mrr: float
    hits: dict[int, float]
    facts: int

    def to_dict(self) -> dict[str, Any]:
        hits = {str(k): share for k, share in self.hits.items()}
        return {**self.__dict__, "hits": hits}


@dataclass(frozen=True)
class FactRule:
    """A rule that speaks for a fact.

    Attributes:
        rule: in words.
        support: how often it holds.
        body: how often it could.
        confidence: support over body, damped.
    """

    rule: str
    support: int
    body: int
    confidence: float


@dataclass(frozen=True)
class FactReasons:
    """The reasons for a fact.

    Attributes:
        fact: head, relation and tail.
        probability: as `predict_proba` gives it.
        rules: that speak for it, the most confident first.
    """

    fact: tuple[Any, Any, Any]
    probability: float
    rules: tuple[FactRule, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def fitted_facts(now: Snapshot) -> FittedFacts:
    """Return the fitted model of a run of facts."""
    fitted = now.state.aggregator
    if not isinstance(fitted, FittedFacts):
        raise ParameterError(
            "the edges of this run have no relations.",
            hint="facts are predicted by a run that was fitted on a typed graph.",
        )
    return fitted


# -- reading ------------------------------------------------------------------------------------


class _Reader:
    """Reads facts and relations as people write them."""

    def __init__(self, graph: Graph, owner: str) -> None:
        assert graph.types is not None
        self.graph, self.types, self.owner = graph, graph.types, owner
        self.relation = cache(self._relation)

    def _relation(self, given: Any) -> int:
        names = [name for _, name, _ in self.types.relations]
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            if str(given) not in names and 0 <= given < len(names):
                return int(given)
            given = str(given)
        return self.types.relation(given)

    def node(self, given: Any, kind: str) -> int:
        return int(self.types.resolved(given, kind, named=self.graph.named))

    def facts(self, given: Any) -> Ids:
        """Return facts ``[m, 3]``: ids and the number of the relation."""
        rows = given.tolist() if hasattr(given, "tolist") else list(given)
        if any(not isinstance(row, list | tuple) or len(row) != 3 for row in rows):
            raise ParameterError(
                f"facts of LinkEraser.{self.owner} are triples of a head, a relation and a tail."
            )
        found = np.empty((len(rows), 3), dtype=np.int64)
        for n, (head, said, tail) in enumerate(rows):
            relation = self.relation(said)
            source, _, target = self.types.relations[relation]
            found[n] = self.node(head, source), relation, self.node(tail, target)
        return found


# -- how likely ---------------------------------------------------------------------------------


def predict_facts(now: Snapshot, facts: ArrayLike | Iterable[Any]) -> NDArray[np.float32]:
    """Return the probability of each fact, judged as if it were not known."""
    graph, fitted = now.state.graph, fitted_facts(now)
    found = _Reader(graph, "predict_proba").facts(facts)
    graph.places(found[:, [0, 2]].ravel())
    scores = _fact_scores(now, found)
    # Of a fact and one other: cases have a fact and CHOICES - 1 others.
    odds = fitted.odds[0] + logarithm(CHOICES - 1.0) + fitted.odds[1] * scores
    probabilities: NDArray[np.float32] = logistic(odds).astype(np.float32)
    return probabilities


def _fact_scores(now: Snapshot, facts: Ids) -> Vector:
    fitted, seed = fitted_facts(now), now.settings.seed
    rows, length = fitted.rows_of(now.state.graph), fitted.model.steps
    out, cases, at = np.zeros(len(facts)), [], []
    heads, tails = ranks(facts[:, 0].copy(), rows.ids), ranks(facts[:, 2].copy(), rows.ids)
    for n, (head, relation, tail) in enumerate(zip(heads, facts[:, 1], tails, strict=True)):
        if head < 0 or tail < 0 or head == tail:
            continue
        choices = np.full(CHOICES, -1)
        choices[0] = tail
        label = 0 if entry(rows, head, 2 * relation, tail) >= 0 else -1
        fact = np.array([head, 2 * relation, tail])
        cases.append(Case.of(rows, fact, choices, label, length, seed))
        at.append(n)
    numbers = numbers_of(cases, rows.num_steps, fitted.rules)[:, 0]
    out[at] = scores_of(np.ascontiguousarray(numbers), fitted.model.columns, fitted.weights)
    return out


# -- the best, and how good ---------------------------------------------------------------------


class _Asked:
    """Scores of all entities that have a fact, for heads under one step at a time."""

    def __init__(self, now: Snapshot) -> None:
        fitted = fitted_facts(now)
        self.rows, self.fitted = fitted.rows_of(now.state.graph), fitted
        self.key, self.slots = key_of(now.settings.seed), np.arange(len(self.rows.ids))
        self.codes = num_codes(self.rows.num_steps, fitted.model.steps)
        self.alive = np.ones(len(self.rows.steps), dtype=np.bool_)
        self.step, self.strengths = -1, np.zeros(0, dtype=np.int64)

    def scores(self, head: int, step: int) -> Vector:
        """Return the score of every entity as a tail of the head at a place."""
        rows, rules, m = self.rows, self.fitted.rules, self.rows.num_steps
        if step != self.step:
            table = (rules.keys, rules.support, rules.body)
            self.strengths, self.step = strengths_of(*table, step, m, self.codes), step
        numbers = np.zeros((len(rows.ids), WIDTH), dtype=np.int64)
        paths = paths_from(rows, self.alive, head, rules.length)
        add_paths(paths, self.strengths, m + 1, numbers)
        for also in (add_constants, add_likeness):
            also(rows, head, step, -1, self.slots, self.key, numbers, _NONE, -1)
        found: Vector = scores_of(numbers, self.fitted.model.columns, self.fitted.weights)
        return found


def rank_facts(now: Snapshot, node: Any, relation: Any, top: int, *, inverse: bool) -> Ranked:
    """Return the most likely tails of a head that are not known, or heads of a tail."""
    top = whole("top", "LinkEraser.rank", top, 1)
    graph, fitted = now.state.graph, fitted_facts(now)
    reader = _Reader(graph, "rank")
    number = reader.relation(relation)
    source, _, target = reader.types.relations[number]
    own = reader.node(node, target if inverse else source)
    graph.places([own])
    asked, step = _Asked(now), 2 * number + inverse
    rows, (place,) = asked.rows, ranks(np.array([own]), asked.rows.ids)
    scores = np.zeros(len(rows.ids)) if place < 0 else asked.scores(place, step)
    if place >= 0:
        scores[rows.others[slice(*span(rows, place, step))]] = 0.0
        scores[place] = 0.0
    wanted = reader.types.index(source if inverse else target)
    there = np.flatnonzero((scores > 0) & (reader.types.of(rows.ids) == wanted))
    best = there[np.lexsort((rows.ids[there], -scores[there]))[:top]]
    odds = fitted.odds[0] + logarithm(CHOICES - 1.0) + fitted.odds[1] * scores[best]
    called = graph.names_of if graph.named or len(reader.types.names) > 1 else np.asarray
    (name,) = called(np.array([own])).tolist()
    return Ranked(name, called(rows.ids[best]), logistic(odds).astype(np.float32), len(there))


def score_facts(now: Snapshot, facts: Any, known: Any = ()) -> FactScore:
    """Rank both ends of facts among all entities that make no known fact.

    Args:
        now: the run.
        facts: to look for.
        known: further facts that are true, besides these and those of the run.
    """
    ranks_found = ranks_of(now, facts, known)
    hits = {k: float((ranks_found <= k).mean()) for k in HITS}
    return FactScore(float((1.0 / ranks_found).mean()), hits, len(ranks_found) // 2)


def ranks_of(now: Snapshot, facts: Any, known: Any = ()) -> Vector:
    """Return the rank of each fact's tail, then of each fact's head; see `score_facts`."""
    graph, reader = now.state.graph, _Reader(now.state.graph, "score")
    found = reader.facts(facts)
    if not len(found):
        raise GraphError("there are no facts to score by.")
    also = np.concatenate([found, reader.facts(known)])
    kinds = np.bincount(reader.types.of(graph.ids), minlength=len(reader.types.names))
    out, asked = np.empty(2 * len(found)), _Asked(now)
    of_type = reader.types.of(asked.rows.ids)
    for inverse in (0, 1):
        head, tail = (2, 0) if inverse else (0, 2)
        true = _tails(also[:, [head, 1, tail]])
        order = np.argsort(found[:, 1], kind="stable")
        for n in order.tolist():
            own, relation, wanted = found[n, [head, 1, tail]].tolist()
            target = reader.types.index(reader.types.relations[relation][0 if inverse else 2])
            out[n + inverse * len(found)] = _rank(
                asked,
                own,
                2 * relation + inverse,
                wanted,
                true[own, relation],
                int(kinds[target]),
                of_type == target,
            )
    return out


def _tails(facts: Ids) -> dict[tuple[int, int], Ids]:
    """Return the sorted tails of each head and relation."""
    found: dict[tuple[int, int], set[int]] = {}
    for head, relation, tail in facts.tolist():
        found.setdefault((head, relation), set()).add(tail)
    return {key: np.array(sorted(tails), dtype=np.int64) for key, tails in found.items()}


def _rank(
    asked: _Asked, own: int, step: int, wanted: int, true: Ids, many: int, fits: NDArray[np.bool_]
) -> float:
    """Return the rank of an entity among ``many`` of its type, but for others that are true."""
    rows = asked.rows
    place, aim = ranks(np.array([own, wanted]), rows.ids).tolist()
    scores = np.zeros(len(rows.ids)) if place < 0 else asked.scores(place, step)
    mine = scores[aim] if aim >= 0 else 0.0
    counts, places = fits.copy(), ranks(true, rows.ids)
    counts[places[places >= 0]] = False
    left = many - int((places < 0).sum())
    if place >= 0:
        others = rows.others[slice(*span(rows, place, step))]
        counts[others] = False
    left -= int((fits & ~counts).sum())
    scores = scores[counts]
    above = int((scores > mine).sum())
    tied = left - len(scores) if mine == 0.0 else 0  # entities without a fact have no score
    tied += int((scores == mine).sum())
    return 1.0 + above + 0.5 * tied


# -- why ----------------------------------------------------------------------------------------


def explain_fact(now: Snapshot, fact: Any) -> FactReasons:
    """Name the rules that speak for a fact, which is judged as if it were not known."""
    graph, fitted = now.state.graph, fitted_facts(now)
    found = _Reader(graph, "explain").facts([fact])
    probability = float(predict_facts(now, [fact])[0])
    rows = fitted.rows_of(graph)
    head, tail = ranks(found[0, [0, 2]].copy(), rows.ids).tolist()
    rules: list[tuple[int, FactRule]] = []
    if head >= 0 and tail >= 0 and head != tail:
        parts = (_paths_said, _constants_said, _likeness_said)
        for part in parts:
            rules += part(now, rows, head, 2 * int(found[0, 1]), tail)
    rules.sort(key=lambda item: (-item[0], item[1].rule))
    return FactReasons(tuple(fact), probability, tuple(rule for _, rule in rules))


def _rule(text: str, support: int, body: int) -> tuple[int, FactRule]:
    share = support / (body + DAMPING)
    return likeness(support, body), FactRule(text, int(support), int(body), round(float(share), 6))


def _said(now: Snapshot, step: int, x: str, y: str) -> str:
    types = now.state.graph.types
    assert types is not None
    name = types.relations[step // 2][1]
    return f"{name}({y}, {x})" if step % 2 else f"{name}({x}, {y})"


def _slots(rows: Rows, tail: int) -> Ids:
    slots = np.full(len(rows.ids), -1)
    slots[tail] = 0
    return slots


Said = Iterator[tuple[int, FactRule]]


def _paths_said(now: Snapshot, rows: Rows, head: int, step: int, tail: int) -> Said:
    rules, m = fitted_facts(now).rules, rows.num_steps
    others = all_but(rows, head, step, tail)
    paths = paths_between(rows, others, head, np.array([tail]), rules.length)
    known = entry(rows, head, step, tail) >= 0
    for code, times in zip(*np.unique(paths[:, 1], return_counts=True), strict=True):
        k = int(np.searchsorted(rules.keys, code * m + step))
        if k == len(rules.keys) or rules.keys[k] != code * m + step:
            continue
        own = times if known else 0
        support, body = rules.support[k] - own, rules.body[k] - own
        if not strength(support, body):
            continue
        steps: list[int] = []
        left = int(code)
        while left:
            left, digit = divmod(left, m + 1)
            steps.insert(0, digit - 1)
        names = [*"xzw"[: len(steps)], "y"]
        ends = zip(steps, names[:-1], names[1:], strict=True)
        path = ", ".join(_said(now, one, a, b) for one, a, b in ends)
        yield _rule(f"{path} => {_said(now, step, 'x', 'y')}", support, body)


def _constants_said(now: Snapshot, rows: Rows, head: int, step: int, tail: int) -> Said:
    graph, slots, key = now.state.graph, _slots(rows, tail), key_of(now.settings.seed)
    counts, met = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for i in range(int(rows.ends[head]), int(rows.ends[head + 1])):
        if not is_asked(rows, head, step, tail, i, key):
            continue
        counts[0] = 0
        body = count_constant(rows, head, step, i, slots, key, counts, met, _NONE, -1)[0]
        if strength(counts[0], body):
            c, t = graph.names_of(rows.ids[[rows.others[i], tail]]).tolist()
            first = _said(now, int(rows.steps[i]), "x", str(c))
            yield _rule(f"{first} => {_said(now, step, 'x', str(t))}", counts[0], body)


def _likeness_said(now: Snapshot, rows: Rows, head: int, step: int, tail: int) -> Said:
    graph, key = now.state.graph, key_of(now.settings.seed)
    shared, counts, _, _ = shared_facts(rows, head, step, tail, key, _NONE, -1)
    for fact, count in zip(shared.tolist(), counts.tolist(), strict=True):
        c, back = divmod(fact, rows.num_steps)
        if entry(rows, c, back, tail) < 0:
            continue
        first, last = span(rows, c, back)
        if last - first > MAX_ALIKE:
            continue
        own, h = graph.names_of(rows.ids[[c, head]]).tolist()
        text = f"{_said(now, back ^ 1, 'y', str(own))} => {_said(now, step, str(h), 'y')}"
        yield _rule(text, count, last - first)
