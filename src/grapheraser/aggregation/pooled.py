"""The pool: shards and closed-form members, combined by a few learned weights.

Each member holds evidence about a node's class, a log probability up to a constant. The pool's
posterior is the softmax of their weighted sum and one offset per class. The weights are learned
from a sample of training nodes that every member judges held out, and relearned with every request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import (
    Change,
    Ensemble,
    Explanation,
    FittedAggregator,
    Say,
    explanation,
    say,
)
from grapheraser.aggregation.form import MAX_WEIGHT, Form, Tensors, check_equal, check_forms
from grapheraser.aggregation.log_linear import PoolWeights, pool_weights
from grapheraser.aggregation.members import (
    PATHS,
    START,
    FittedMember,
    Member,
    PathRegression,
    RoutedShards,
    closed_form,
    closed_form_of_targets,
)
from grapheraser.aggregation.members.base import Evidence, Ids, Positions
from grapheraser.aggregation.members.counting import WORDS
from grapheraser.aggregation.members.features import is_wide
from grapheraser.aggregation.members.shards import FittedShards
from grapheraser.aggregation.members.surprises import NAMES as SURPRISES
from grapheraser.aggregation.members.target_words import names_for
from grapheraser.aggregation.routed import SHARDS_ASKED, RoutedAggregator
from grapheraser.aggregation.sample.membership import (
    DEFAULT,
    Candidates,
    Sample,
    limit_on,
    limits,
    sampled_nodes,
)
from grapheraser.aggregation.target_pool import QUIET, remarks, target_answers, target_weights, told
from grapheraser.checks import whole
from grapheraser.graph import Graph
from grapheraser.graph.labels import SEVERAL
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, log_normalise

# A quarter of the training nodes, but so many at the most.
_SHARE, _COUNT = 0.25, 1000
_SHARDS = "shards"
# The weight that members of other tasks start from.
_START = 0.3
EMPTY_SAMPLE = "the sample holds no nodes: every member has the weight that it starts from"


@dataclass(frozen=True)
class PooledAggregator:
    """A pool of closed-form members, and of the shards where there are any.

    Attributes:
        members: names of the closed-form members, a selection of `MEMBERS`.
        shards: whether the routed shards are a member.
        sample: which training nodes to learn the weights from: a share in (0, 1], a count,
            ``"all"``, or ``"auto"``: a quarter, but 1000 at the most, and all where labels are few.
        shards_asked: how many shards are asked about a node.
    """

    members: tuple[str, ...]
    shards: bool = True
    sample: Sample = DEFAULT
    shards_asked: int = SHARDS_ASKED

    def __post_init__(self) -> None:
        limits(self.sample)
        asked = whole("shards_asked", "PooledAggregator", self.shards_asked, 1)
        object.__setattr__(self, "shards_asked", asked)

    @property
    def name(self) -> str:
        return "routed" if self.shards else "closed-form"

    def fit(self, ensemble: Ensemble) -> FittedPool:
        """See `Aggregator`."""
        candidates = Candidates.of(ensemble.graph, self._limit(ensemble), ensemble.seed)
        sample, parts = candidates.sampled, self._parts_for(ensemble.graph)
        # Shards first: a first fit compiles their kernels while the compiler's process has begun
        # with those of the other members. No part looks at another one.
        order = sorted(parts, key=lambda name: name != _SHARDS)
        fitted = {name: parts[name].fit(ensemble, sample) for name in order}
        return _learned(ensemble, candidates, {name: fitted[name] for name in parts})

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> FittedPool:
        """See `Aggregator`."""
        assert isinstance(fitted, FittedPool)
        graph, seed, known = ensemble.graph, ensemble.seed, fitted.candidates
        limit = self._limit(ensemble)
        if known is None or known.limit != limit:
            candidates = Candidates.of(graph, limit, seed)
        else:
            candidates = known.changed(graph, change.changed, seed)
        sample = candidates.sampled
        members = {
            name: part.refit(fitted.members[name], ensemble, change, sample)
            for name, part in self._parts_for(graph).items()
        }
        learned = _learned(ensemble, candidates, members)
        if graph.label_kind.is_classes:
            return learned
        return replace(learned, remarks=remarks(change.before.graph, graph))

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble) -> None:
        """See `ChecksTensors`."""
        graph, classes = ensemble.graph, ensemble.graph.label_kind.is_classes
        parts = self._parts_for(graph)
        count, several = self._count(graph, parts), graph.label_kind.name == SEVERAL
        sample = sampled_nodes(graph, self._limit(ensemble), ensemble.seed)
        own = {key: tensor for key, tensor in tensors.items() if key.split("/")[0] not in parts}
        forms = {
            "nodes": Form(np.int64, sample.shape),
            "weights": Form(
                np.float64,
                (count,) if classes else (2, count, graph.num_classes),
                0,
                MAX_WEIGHT,
            ),
            "offsets": Form(
                np.float64,
                (graph.num_classes if classes else 2 * graph.num_classes + several,),
                -MAX_WEIGHT,
                MAX_WEIGHT,
            ),
        }
        check_forms(own, forms, "the pool of members")
        check_equal(own["nodes"], sample, "the nodes that the pool was learned from")
        for name, part in parts.items():
            part.check_tensors(_of(name, tensors), ensemble, sample)

    def restore(self, tensors: Tensors) -> FittedPool:
        """See `Aggregator`."""
        kept = {key.split("/")[0] for key in tensors}
        parts = self._members(tensors["weights"].ndim == 1, PATHS in kept, WORDS in kept)
        members = {name: part.restore(_of(name, tensors)) for name, part in parts.items()}
        learned = (np.asarray(tensors[key], dtype=np.float64) for key in ("weights", "offsets"))
        sample = np.asarray(tensors["nodes"], dtype=np.int64)
        return FittedPool(sample, members, PoolWeights(*learned), None)

    def _parts_for(self, graph: Graph) -> dict[str, Member]:
        return self._members(graph.label_kind.is_classes, graph.types is not None, is_wide(graph))

    def members_on(self, graph: Graph) -> tuple[str, ...]:
        """Return the closed-form members on a graph: on a typed one paths stand for all."""
        return self.members if graph.types is None else (PATHS,)

    def _members(self, classes: bool, typed: bool, wide: bool) -> dict[str, Member]:
        """Members by name; see `members_on`."""
        if not typed:
            return self._parts(classes, wide)
        shards = replace(self, members=())._parts(classes, wide)
        return {PATHS: PathRegression(), **shards}

    def _count(self, graph: Graph, parts: Mapping[str, Member]) -> int:
        """Number of members; those of classes share their sums, those of targets don't."""
        if not graph.label_kind.is_classes:
            return len(parts) + (WORDS in parts) * (len(names_for(graph.num_classes)) - 1)
        more = (SURPRISES[0] in parts) * (len(SURPRISES) - 1)
        return len(self.members_on(graph)) + more + self.shards

    def _parts(self, classes: bool, wide: bool) -> dict[str, Member]:
        names = self.members
        parts = closed_form(names) if classes else closed_form_of_targets(names, wide=wide)
        if self.shards:
            routing = RoutedAggregator(floor=0.0, shards_asked=self.shards_asked)
            parts[_SHARDS] = RoutedShards(routing)
        return parts

    def _limit(self, ensemble: Ensemble) -> tuple[float, int | None]:
        if self.sample == DEFAULT and not ensemble.graph.label_kind.is_classes:
            return _SHARE, _COUNT  # their regressions need nodes outside the sample
        return limit_on(ensemble.graph, self.sample, (_SHARE, _COUNT))


def _of(member: str, tensors: Tensors) -> Tensors:
    """The tensors of one member, by their own names."""
    prefix = f"{member}/"
    return {
        key.removeprefix(prefix): tensor
        for key, tensor in tensors.items()
        if key.startswith(prefix)
    }


def _learned(
    ensemble: Ensemble, candidates: Candidates, members: dict[str, FittedMember]
) -> FittedPool:
    sample = candidates.sampled
    parts = list(members.values())
    names = [name for part in parts for name in part.names]
    start = np.array([START.get(name, _START) for name in names])
    evidence = np.concatenate([part.held_out(ensemble, sample) for part in parts], axis=1)
    if not ensemble.graph.label_kind.is_classes:
        quiet = names.index(QUIET) if QUIET in names else -1
        found = target_weights(ensemble.graph, sample, evidence, quiet)
        return FittedPool(sample, members, found, candidates)
    labels = ensemble.graph.labels(sample)
    return FittedPool(sample, members, pool_weights(evidence, labels, start), candidates)


@dataclass(frozen=True, eq=False)
class FittedPool:
    """The members, fitted, and what was learned about them.

    Attributes:
        sample: sorted ids of the nodes that the weights were learned from.
        members: by the name under which their tensors are kept.
        learned: the weights, in the order of the members' names, and the offsets.
        candidates: the sample, and whom it lets in next; None after loading.
        remarks: on what the last request cost.
    """

    sample: Ids
    members: Mapping[str, FittedMember]
    learned: PoolWeights
    candidates: Candidates | None = field(repr=False)
    remarks: tuple[str, ...] = ()

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        kept: dict[str, NDArray[np.generic]] = {
            f"{name}/{key}": tensor
            for name, member in self.members.items()
            for key, tensor in member.tensors.items()
        }
        weights, offsets = self.learned
        return kept | {"nodes": self.sample, "weights": weights, "offsets": offsets}

    @property
    def notes(self) -> tuple[str, ...]:
        return self.remarks if len(self.sample) else (*self.remarks, EMPTY_SAMPLE)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each member, by name; the mean over targets, where there are several."""
        names = [name for member in self.members.values() for name in member.names]
        weights = self.learned.members
        weights = weights if weights.ndim == 1 else weights[0].mean(axis=1)
        return dict(zip(names, weights.tolist(), strict=True))

    @property
    def threshold(self) -> float:
        """The probability above which one of several labels is said; see `target_pool`."""
        weights, offsets = self.learned
        several = weights.ndim == 3 and len(offsets) > 2 * weights.shape[-1]
        return float(offsets[-1]) if several else 0.5

    def predict_proba(self, ensemble: Ensemble, positions: Positions) -> NDArray[Any]:
        """See `FittedAggregator`."""
        wanted, back = np.unique(np.asarray(positions, dtype=np.int64), return_inverse=True)
        return self.answers(ensemble.graph, self.evidence(ensemble, wanted))[back]

    def answers(self, graph: Graph, evidence: Evidence) -> NDArray[Any]:
        """Return posteriors, or numbers, from what the members say."""
        if not graph.label_kind.is_classes:
            return target_answers(graph, evidence, self.learned)
        pooled: NDArray[np.float32] = _pooled(evidence, *self.learned)
        return pooled

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """Return what each member says ``[len(positions), members, num_classes]``."""
        parts = [member.evidence(ensemble, positions) for member in self.members.values()]
        return np.concatenate(parts, axis=1)

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        positions = np.array([position])
        evidence = self.evidence(ensemble, positions)
        label = int(_pooled(evidence, *self.learned)[0].argmax())
        total = self.learned.members.sum() or 1.0
        says: list[Say] = []
        for row, (name, weight) in zip(evidence[0], self.weights.items(), strict=True):
            shards = self.members.get(name)
            if isinstance(shards, FittedShards):
                heard = shards.routing.explain(ensemble, position).members
                says += [replace(s, weight=s.weight * weight / total) for s in heard]
            elif weight > 0:
                posterior = np.exp(row - np.logaddexp.reduce(row))
                says.append(say(name, weight / total, posterior))
        says = [item for item in says if item.weight > 0]
        return explanation(ensemble, position, says, label=label, why=self._why("log-linear"))

    def explain_target(self, ensemble: Ensemble, position: int, target: int) -> Explanation:
        """See `ExplainsTargets`."""
        kind, said = ensemble.graph.label_kind, self.evidence(ensemble, np.array([position]))
        label = float(self.answers(ensemble.graph, said)[0, target])
        values, weights = told(ensemble.graph, said, self.learned, target)
        labels = np.zeros(len(values), dtype=np.int64)
        if not kind.is_numbers:
            label, labels = float(label >= self.threshold), (values >= self.threshold).astype(int)
        total, rows = weights.sum() or 1.0, zip(self.weights, labels.tolist(), strict=True)
        says = [
            Say(name, float(weight / total), own, float(value))
            for (name, own), weight, value in zip(rows, weights, values, strict=True)
            if weight > 0
        ]
        why = self._why("linear" if kind.is_numbers else "log-linear")
        name = kind.target_names[target]
        return explanation(ensemble, position, says, label=label, why=why, target=name)

    def _why(self, kind: str) -> str:
        return f"a {kind} pool, its weights learned from {len(self.sample)} training nodes"


@compiled
def _pooled(evidence, weights, offsets):  # type: ignore[no-untyped-def]
    """Posteriors ``[num_nodes, num_classes]``, each row by itself."""
    m, members, c = evidence.shape
    out, scores = np.empty((m, c), dtype=np.float32), np.empty(c)
    for v in range(m):
        for k in range(c):
            scores[k] = offsets[k]
        for i in range(members):
            if weights[i] > 0.0:
                for k in range(c):
                    scores[k] += weights[i] * evidence[v, i, k]
        log_normalise(scores)
        for k in range(c):
            out[v, k] = exponential(scores[k])
    return out
