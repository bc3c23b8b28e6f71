"""Why a graph is taken for what it is: the graphs most like it, and the nodes that decide."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from grapheraser.aggregation import BoundAggregator, Say
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.graphs.collection import Collection
from grapheraser.graphs.encoding import SmallGraph, rows_of
from grapheraser.graphs.learner import answers_to
from grapheraser.graphs.local import FittedLocal
from grapheraser.reports.figures.drawing import Drawing
from grapheraser.reports.figures.springs import settle

_SHOWN = 5
_SIZE, _MARGIN, _RADIUS = 360.0, 24.0, 9.0
# The share of the most telling node's part that a node needs to be marked.
_TELLS = 0.25
# Of a drawing outside a page.
_COLOURS = (
    "--ink:#1c1c1c;--paper:#ffffff;--quiet:#6b6b6b;--line:#c4c4c4;--kept:#ececec;--lit:#2f6fb5"
)


@dataclass(frozen=True)
class Alike:
    """A training graph that a decision rests on.

    Attributes:
        graph: its id.
        label: its class; of several labels 0, 1 or -1, of numbers the number.
        similarity: to the graph in question, 1 where all counts agree.
    """

    graph: int | str
    label: float
    similarity: float


@dataclass(frozen=True)
class GraphExplanation:
    """The reasons for a decision about a graph.

    Attributes:
        graph: its id.
        label: the class that the pool decided for; 1 or 0, whether a label is said; the number.
        members: of the pool, heaviest first; their confidence in a number is the one they say.
        alike: the graphs most like it that are learned from.
        nodes: of each node, by id, how much the probability, or the number, falls without it.
        drawn: the graph itself.
        target: of several labels or numbers the name of the one that is explained.
    """

    graph: int | str
    label: float
    members: tuple[Say, ...]
    alike: tuple[Alike, ...]
    nodes: dict[int, float]
    drawn: SmallGraph
    target: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "drawn"}

    @property
    def drawing(self) -> Drawing:
        """The graph: nodes that speak for the answer are filled, those against it are open."""
        what = "class" if self.target is None else f"target {self.target}:"
        return draw(self.drawn, self.nodes, f"graph {self.graph}, {what} {self.label:.4g}")

    def to_svg(self) -> str:
        """Return the drawing as a file of its own."""
        drawing, rules = self.drawing, files("grapheraser.reports") / "templates" / "drawing.css"
        size = f"0 0 {drawing.width:g} {drawing.height:g}"
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="{size}"'
        style = f"<style>{rules.read_text(encoding='utf-8')}</style>"
        return f'{opening} style="{_COLOURS}">{style}{drawing.content}</svg>\n'


def explain(now: Snapshot, graph: int | str, target: int | str = 0) -> GraphExplanation:
    """Explain the decision about one graph of the collection; see `CollectionEraser.explain`."""
    state, kind = now.state, now.state.graph.label_kind
    (node,) = state.graph.ids_of([graph]).tolist()
    small = Collection(state.graph)[node]
    pool = BoundAggregator(state.aggregator, state.ensemble)
    said = pool.explain(node, None if kind.is_classes else target)
    at = int(said.label) if said.target is None else kind.number_of(said.target)
    (name,) = state.graph.names_of(np.array([node]))
    alike, nodes = _alike(now, node, at), _deciding(now, small, at)
    return GraphExplanation(name, said.label, said.members, alike, nodes, small, said.target)


def _alike(now: Snapshot, node: int, target: int) -> tuple[Alike, ...]:
    local = getattr(now.state.aggregator, "members", {}).get("local")
    if not isinstance(local, FittedLocal):
        return ()
    graph, ensemble = now.state.graph, now.state.ensemble
    found = local.nearest(ensemble, graph.positions([node]), np.array([node]))
    nodes, similar = (part[0, 0, :_SHOWN] for part in (found.near, found.similar))
    there = nodes >= 0
    labels = graph.labels(nodes[there])
    labels = labels if graph.label_kind.is_classes else labels.reshape(len(labels), -1)[:, target]
    columns = zip(
        graph.names_of(nodes[there]), labels.tolist(), similar[there].tolist(), strict=True
    )
    return tuple(Alike(*column) for column in columns)


def _deciding(now: Snapshot, small: SmallGraph, answer: int) -> dict[int, float]:
    """Leave out one node after the other, and ask again."""
    if len(small.nodes) < 2:
        return dict.fromkeys(small.nodes.tolist(), 0.0)
    parts = [small.without(np.array([node]), small.edges[:0]) for node in small.nodes.tolist()]
    numbers = [part.numbers for part in (small, *parts)]
    rows = rows_of(np.concatenate(numbers), np.array([len(part) for part in numbers]))
    answers = answers_to(now, rows)[:, answer]
    fall = (answers[0] - answers[1:]).tolist()
    return dict(zip(small.nodes.tolist(), fall, strict=True))


def draw(small: SmallGraph, nodes: dict[int, float], about: str) -> Drawing:
    """Draw a small graph, its nodes by how much they speak for a decision."""
    ends = np.searchsorted(small.nodes, small.edges)
    places = _placed(len(small.nodes), ends)
    drawing = Drawing(_SIZE, about, _SIZE)
    for (u, v), kind in zip(ends.tolist(), small.edge_labels.tolist(), strict=True):
        (x1, y1), (x2, y2) = places[u], places[v]
        drawing.line(x1, y1, x2, y2, "edge lit" if kind > 2 else "edge")
    most = max((abs(value) for value in nodes.values()), default=0.0) or 1.0
    for at, node in enumerate(small.nodes.tolist()):
        share = nodes.get(node, 0.0) / most
        kind = "lit" if share > _TELLS else "hole" if share < -_TELLS else "kept"
        title = f"node {node}, label {small.labels[at]}: {nodes.get(node, 0.0):+.3f}"
        drawing.circle(*places[at], _RADIUS, kind, title)
        drawing.text(places[at][0], places[at][1] + 4, str(small.labels[at]), anchor="middle")
    return drawing


def _placed(n: int, ends: NDArray[np.int64]) -> list[tuple[float, float]]:
    """Spread the nodes over the plane; parts that don't hang together are joined for the while."""
    joined = [*map(tuple, ends.tolist()), *((i, i + 1) for i in range(n - 1))]
    pairs = sorted({pair for u, v in joined if u != v for pair in ((u, v), (v, u))})
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    edges = csr_array((np.ones(len(pairs)), (ends[0], ends[1])), shape=(n, n))
    found = settle(edges, np.arange(n), 0) if n > 1 else np.zeros((n, 2))
    low, span = found.min(axis=0), max(float(np.ptp(found, axis=0).max()), 1e-9)
    scaled = _MARGIN + (found - low) / span * (_SIZE - 2 * _MARGIN)
    return [(float(x), float(y)) for x, y in scaled]
