"""Posteriors of a user's own module: on the surroundings of the nodes, or on the whole graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from grapheraser.arrays import Floats32, Ints
from grapheraser.engines import reference
from grapheraser.engines.graph_checks import accepted
from grapheraser.engines.task import ShardWeights
from grapheraser.errors import GraphEraserError
from grapheraser.graph import Graph
from grapheraser.graph.edge_values import PLAIN, EdgeKind
from grapheraser.graph.types import Types
from grapheraser.inference.surroundings import Surroundings, surroundings_of, whole_graph
from grapheraser.models import CustomModel
from grapheraser.seeding import generator

# A NaN among the features of one node spreads to every node whose scores depend on them; how far
# it comes is how far the module looks. But comparisons lose it, and other things may have a part
# in the scores: the number of nodes, say. So scores of some nodes are also computed from their
# surroundings alone, and with all that is further away replaced. Where they change, the module
# needs the whole graph.
Run = Callable[..., Tensor]

# Features of nodes, whether edges have weights, features of edges.
Shape: TypeAlias = tuple[int, bool, int]

# In graphs worth the trouble, whoever looks further than this sees nearly everything.
MAX_HOPS = 6
# Large enough for sums of float32 numbers in another order, too small for anything else.
_ROUNDING = 1e-4
# Far outside the features of the small graphs, which are numbers in [0, 1).
_LARGE = 100.0
_ELSEWHERE = "its scores depend on more than the surroundings of a node"


@dataclass(frozen=True)
class Reach:
    """The distance that a module looks."""

    hops: int | None  # None where it needs the whole graph
    # Whether the outermost nodes that it looks at need all of their neighbours.
    degrees: bool = True
    why: str = ""  # the reason where it needs the whole graph


def reach_of(run: Run, num_features: int, edge_kind: EdgeKind = PLAIN) -> Reach:
    """Try a module.

    ``run`` returns scores ``[n, num_classes]`` from features, ``edge_index`` and what edges carry,
    by name; the module must be in the same state each time.
    """
    shape = num_features, edge_kind.weighted, edge_kind.columns
    try:
        hops = _spread(run, shape)
        if hops > MAX_HOPS:
            return Reach(None, why=f"it looks at nodes more than {MAX_HOPS} hops away")
        return _compared(run, shape, hops)
    except Exception as error:  # whatever a user's code raises on a graph that is not theirs
        return Reach(None, why=f"it failed on a small graph ({type(error).__name__}: {error})")


def _spread(run: Run, shape: Shape) -> int:
    """Return how many hops a node's NaN spreads; more than `MAX_HOPS` if it spreads too far."""
    graph = _small_graph(2 * MAX_HOPS, *shape)
    start = np.zeros(1, dtype=np.int64)
    seen = whole_graph(graph, start)
    x = seen.x.clone()
    x[0] = torch.nan
    scores = run(x, seen.edge_index, **seen.carried)
    spread = np.flatnonzero(scores.isnan().any(dim=1).numpy())
    hops = 0
    while hops <= MAX_HOPS and not np.isin(spread, graph.within_hops(start, hops)).all():
        hops += 1
    return hops


def _compared(run: Run, shape: Shape, hops: int) -> Reach:
    """Compare scores of some nodes with those that they have when everything far away is other."""
    length = 8 * (hops + 2)
    graph = _small_graph(length, *shape)
    # Away from the ends and from each other.
    some = np.array([3 * length // 8, 6 * length // 8 + 1])
    seen = whole_graph(graph, some)
    with _Reading() as reading:  # type: ignore[no-untyped-call]
        expected = run(seen.x, seen.edge_index, **seen.carried)[seen.places]
    if reading.happened:
        return Reach(None, why="what it does depends on values that it reads from tensors")

    def is_same(part: Surroundings) -> bool:
        scores = run(part.x, part.edge_index, **part.carried)
        difference = (scores[part.places] - expected).abs().max()
        return bool(difference <= _ROUNDING * expected.abs().max())

    near = torch.from_numpy(graph.within_hops(some, hops))
    for far in (_LARGE, -_LARGE):
        # Whatever ranks nodes, or compares them with all others, ranks some of them otherwise now.
        x = torch.full_like(seen.x, far).index_copy(0, near, seen.x[near])
        if not is_same(seen._replace(x=x)):
            return Reach(None, why=_ELSEWHERE)
    for degrees in (False, True):
        if is_same(surroundings_of(graph, some, hops, degrees=degrees)):
            return Reach(hops, degrees)
    return Reach(None, why=_ELSEWHERE)


@lru_cache(maxsize=4)
def _small_graph(length: int, num_features: int, weighted: bool, edge_columns: int) -> Graph:
    """Make a path with triangles and leaves along it; the path's nodes come first."""
    path = np.arange(length)
    leaves = np.arange(length, length + length // 2)
    edges = np.concatenate(
        [
            np.stack([path[:-1], path[1:]]),
            np.stack([path[:-2:4], path[2::4]]),
            np.stack([2 * (leaves - length), leaves]),
        ],
        axis=1,
    )
    n = length + len(leaves)
    x = generator(0, "small graph").random((n, num_features), dtype=np.float32)
    carried = generator(0, "small graph", "edges").random((edges.shape[1], 1 + edge_columns))
    return Graph.from_arrays(
        x,
        edges,
        np.zeros(n, dtype=np.int64),
        each_edge_once=True,
        edge_weight=0.5 + carried[:, 0] if weighted else None,
        edge_attr=carried[:, 1:] if edge_columns else None,
    )


class _Reading(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notices when numbers or truth values are read from tensors, to branch on them perhaps."""

    happened = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        aten = torch.ops.aten
        if func is aten._local_scalar_dense.default:
            # Whole numbers are counts of nodes or edges, which PyG reads all the time.
            self.happened |= args[0].dtype.is_floating_point or args[0].dtype == torch.bool
        self.happened |= func is aten.equal.default
        return func(*args, **(kwargs or {}))


def check_module(model: CustomModel, weights: Iterable[ShardWeights], graph: Graph) -> None:
    """Refuse a user's module that cannot hold the weights of a shard."""
    with reference.reproducible(0):
        for shard in islice(weights, 1):
            reference.load_tensors(model.module_for(graph), shard.tensors)


def module_posteriors(
    model: CustomModel, weights: Sequence[ShardWeights], graph: Graph, positions: Ints
) -> Floats32:
    """Return posteriors of a user's module, as on the whole graph up to rounding.

    They are a function of these arguments: what was computed before has no part in them. But a
    node's posterior may have other bits with other nodes beside it.
    """
    positions = np.ascontiguousarray(positions, dtype=np.int64)
    out = np.empty((len(weights), len(positions), graph.num_classes), dtype=np.float32)
    if not len(positions):
        return out
    known: dict[Reach | None, Surroundings] = {}
    with reference.reproducible(0), torch.no_grad():
        for i, shard in enumerate(weights):
            scores = _scores(module_of(model, shard, graph), graph, positions, known)
            classes = graph.label_kind.is_classes
            out[i] = (torch.softmax(scores, dim=1) if classes else scores).numpy()
    if not np.isfinite(out).all():
        raise GraphEraserError(
            f"{model.name} gives scores that are not finite, so nothing follows from them.",
            hint="look for divisions by zero, logarithms and overflows in its forward.",
        )
    return out


def _scores(
    module: ShardModule, graph: Graph, positions: Ints, known: dict[Reach | None, Surroundings]
) -> Tensor:
    """Return scores ``[m, num_classes]``; ``known`` keeps what modules see, by their reach."""
    reach = module.reach
    why = reach.why
    if reach.hops is not None:
        if reach not in known:
            known[reach] = surroundings_of(graph, positions, reach.hops, degrees=reach.degrees)
        try:
            scores = module(known[reach])
        except Exception as error:  # whatever a user's code raises where it meets a NaN
            why = f"it failed on the surroundings of nodes ({type(error).__name__}: {error})"
        else:
            if not scores.isnan().any():
                return scores
            why = f"it looks further than hops={reach.hops}"
    if None not in known:
        known[None] = whole_graph(graph, positions)
    scores = module(known[None])
    if why and not scores.isnan().any():
        _warn(module.name, why)
    return scores


def _warn(name: str, why: str) -> None:
    warnings.warn(
        f"{name} is evaluated on the whole graph, however few nodes are asked for: {why}. "
        "If you know how far it looks, say so: CustomModel(factory, hops=2), or hops='all' for "
        "the whole graph without this warning.",
        stacklevel=2,
    )


# A value, and how often it was changed in place if it is a tensor.
_Part: TypeAlias = tuple[Any, int]


class ShardModule:
    """A user's module with the weights of a shard, in eval mode.

    Every pass starts from the module as it was built: one that a pass has changed (PyG's layers
    with ``cached=True`` keep the first graph that they see) is built anew.
    """

    def __init__(
        self,
        model: CustomModel,
        tensors: Mapping[str, NDArray[np.generic]],
        num_features: int,
        num_classes: int,
        edge_kind: EdgeKind = PLAIN,
        types: Types | None = None,
    ) -> None:
        self.model = model
        self._tensors, self._types = tensors, types
        self._shape, self._edge_kind = (num_features, num_classes), edge_kind
        self._built: _Built | None = self._build()

    @property
    def name(self) -> str:
        return self.model.name

    def __call__(self, seen: Surroundings) -> Tensor:
        """Return scores of the nodes asked for ``[len(seen.places), num_classes]``."""
        return self._pass(seen.x, seen.edge_index, **seen.carried)[seen.places]

    @cached_property
    def reach(self) -> Reach:
        """The module's reach, as the user says, or as found by trying."""
        hops = self.model.hops
        if hops == "auto" and self._types is not None:
            return Reach(None)  # no small graph would have its schema
        if hops == "auto":
            return reach_of(self._pass, self._shape[0], self._edge_kind)
        return Reach(None if hops == "all" else int(hops))

    def _pass(self, x: Tensor, edge_index: Tensor, **carried: Tensor) -> Tensor:
        built = self._built or self._build()
        self._built = None  # until it is known to be as it was
        _reseed()
        scores: Tensor = built.module(x, edge_index, **accepted(built.module, carried))
        if built.is_unchanged():
            self._built = built
        return scores

    def _build(self) -> _Built:
        _reseed()
        module = self.model.module(*self._shape, self._types)
        reference.load_tensors(module, self._tensors).eval()
        return _Built(module, _parts(module))


class _Built(NamedTuple):
    """A module, and what it was made of when it was built."""

    module: nn.Module
    parts: list[_Part]

    def is_unchanged(self) -> bool:
        now = _parts(self.module)
        return len(now) == len(self.parts) and all(
            value is known and version == known_version
            for (value, version), (known, known_version) in zip(now, self.parts, strict=True)
        )


def _parts(module: nn.Module) -> list[_Part]:
    """List all attributes of a module and of those inside it, and what dicts, lists, sets hold."""
    values: list[Any] = []
    for part in module.modules():
        for value in vars(part).values():
            values.append(value)
            if isinstance(value, dict):
                values.extend(value.values())
            elif isinstance(value, list | set):
                values.extend(value)
    return [(value, value._version if isinstance(value, Tensor) else 0) for value in values]


def _reseed() -> None:
    """Give the same random numbers to every module; `torch.manual_seed` asks for GPUs as well."""
    torch.default_generator.manual_seed(0)
    reference.seed_modules(0)


_KNOWN: WeakKeyDictionary[ShardWeights, ShardModule] = WeakKeyDictionary()


def module_of(model: CustomModel, weights: ShardWeights, graph: Graph) -> ShardModule:
    """Return the shard's module; remembered for as long as the weights themselves live."""
    known = _KNOWN.get(weights)
    if known is None or known.model != model:
        shape = graph.num_features, graph.num_classes, graph.edge_kind, graph.types
        known = ShardModule(model, weights.tensors, *shape)
        _KNOWN[weights] = known
    return known
