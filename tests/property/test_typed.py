"""Typed graphs: what sequences of requests and changes leave is what a fit on the raw rest gives.

The oracle keeps plain tables, changes them by hand and builds the graph anew by the public
constructor.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation.members import paths
from grapheraser.aggregation.sample import membership
from grapheraser.errors import GraphError

pytestmark = pytest.mark.filterwarnings("ignore:the closed form ignores the weights")
MAKES, WANTS = ("a", "makes", "b"), ("a", "wants", "b")
IN, OF, KNOWS = ("b", "in", "c"), ("c", "of", "a"), ("a", "knows", "a")
WEIGHTED = (WANTS, KNOWS)
WIDTHS = {"a": 2, "b": 0, "c": 70}
World = dict[str, Any]


def world_of(rng: np.random.Generator, sizes: dict[str, int]) -> World:
    def rows(kind: str) -> dict[int, Any]:
        x = rng.integers(-2, 3, size=(sizes[kind], WIDTHS[kind])).astype(float)
        return {int(i): x[i].tolist() for i in range(sizes[kind])}

    edges: dict[Any, Any] = {}
    for relation in (MAKES, WANTS, IN, OF, KNOWS):
        source, _, target = relation
        pairs = rng.integers(0, [sizes[source], sizes[target]], size=(3 * sizes["a"], 2)).tolist()
        real = {(u, v) for u, v in pairs if source != target or u != v}
        edges[relation] = {pair: float(rng.integers(1, 5)) for pair in sorted(real)}
    labels = {i: int(rng.integers(3)) for i in range(sizes["a"]) if rng.random() < 0.8}
    split = {i: "test" if rng.random() < 0.2 else "train" for i in labels}
    return {"x": {kind: rows(kind) for kind in WIDTHS}, "e": edges, "y": labels, "split": split}


def built(world: World) -> ge.Graph:
    nodes: dict[str, Any] = {}
    for kind, width in WIDTHS.items():
        rows = world["x"][kind]
        table: dict[str, Any] = {"id": list(rows)}
        table |= {f"f{j}": [row[j] for row in rows.values()] for j in range(width)}
        nodes[kind] = table
    nodes["a"]["label"] = [world["y"].get(i, "") for i in world["x"]["a"]]
    nodes["a"]["split"] = [world["split"].get(i, "") for i in world["x"]["a"]]
    edges = {}
    for relation, pairs in world["e"].items():
        edges[relation] = {"source": [u for u, _ in pairs], "target": [v for _, v in pairs]}
        if relation in WEIGHTED:
            edges[relation]["weight"] = list(pairs.values())
    return ge.Graph.from_typed_tables(nodes, edges, target="a", num_classes=3)


def forget_node(world: World, kind: str, node: int) -> None:
    del world["x"][kind][node]
    if kind == "a":
        world["y"].pop(node, None), world["split"].pop(node, None)
    for (source, _, target), pairs in world["e"].items():
        for u, v in list(pairs):
            if (source, u) == (kind, node) or (target, v) == (kind, node):
                del pairs[u, v]


def drawn(world: World, rng: np.random.Generator) -> tuple[list[Any], World]:
    """Draw a request or change, and carry it out by hand."""
    after = deepcopy(world)
    kinds = (a_node, a_tie, a_tie, ties, features, a_label, set_label, new, wanted)
    return kinds[int(rng.integers(len(kinds)))](after, rng), after


def _node(world: World, rng: np.random.Generator, kinds: str = "abc") -> tuple[str, int]:
    kind = str(rng.choice(list(kinds)))
    return kind, int(rng.choice(list(world["x"][kind])))


def _tie(world: World, rng: np.random.Generator) -> tuple[Any, Any]:
    full = [relation for relation, pairs in world["e"].items() if pairs]
    relation = full[int(rng.integers(len(full)))]
    return relation, list(world["e"][relation])[int(rng.integers(len(world["e"][relation])))]


def a_node(world: World, rng: np.random.Generator) -> list[Any]:
    kind, node = _node(world, rng)
    forget_node(world, kind, node)
    return [ge.Nodes([node], type=kind)]


def a_tie(world: World, rng: np.random.Generator) -> list[Any]:
    relation, pair = _tie(world, rng)
    del world["e"][relation][pair]
    return [ge.Edges([pair], type=relation)]


def ties(world: World, rng: np.random.Generator) -> list[Any]:
    (a, _, b), (u, v) = _tie(world, rng)
    for (source, _, target), pairs in world["e"].items():
        for p in [p for p in pairs if {(source, p[0]), (target, p[1])} == {(a, u), (b, v)}]:
            del pairs[p]
    return [ge.Edges([(f"{a}/{u}", f"{b}/{v}")])]


def features(world: World, rng: np.random.Generator) -> list[Any]:
    kind, node = _node(world, rng, "ac")
    if not any(world["x"][kind][node]):
        return a_tie(world, rng)
    world["x"][kind][node] = [0.0] * WIDTHS[kind]
    return [ge.Features([node], type=kind)]


def a_label(world: World, rng: np.random.Generator) -> list[Any]:
    known = int(rng.choice(list(world["y"])))
    del world["y"][known]
    if world["split"][known] == "train":
        del world["split"][known]
    return [ge.Labels([known])]


def set_label(world: World, rng: np.random.Generator) -> list[Any]:
    _, node = _node(world, rng, "a")
    world["y"][node] = int(rng.integers(3))
    world["split"].setdefault(node, "train")
    return [ge.SetLabels([node], [world["y"][node]])]


def new(world: World, rng: np.random.Generator) -> list[Any]:
    made, (_, b) = 100 + int(rng.integers(10**6)), _node(world, rng, "b")
    world["x"]["a"][made] = [1.0, -2.0]
    world["y"][made], world["split"][made] = 1, "train"
    world["e"][MAKES][made, b] = 1.0
    added = ge.AddNodes([made], [[1.0, -2.0]], [1], type="a")
    return [added, ge.AddEdges([(made, b)], type=MAKES)]


def wanted(world: World, rng: np.random.Generator) -> list[Any]:
    (_, u), (_, v) = _node(world, rng, "a"), _node(world, rng, "b")
    world["e"][WANTS][u, v] = 7.0
    return [ge.AddEdges([(u, v)], [7.0], type=WANTS)]


@pytest.fixture(params=["few labels", "many labels"])
def thinned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few neighbours count, so that some don't; and both ways to solve the regression."""
    monkeypatch.setattr(paths, "REACH_OF_FEW", (3, 2))
    monkeypatch.setattr(paths.PathRegression.__init__, "__defaults__", (1.0, 512, 512, (3, 2)))
    if request.param == "many labels":
        monkeypatch.setattr(membership, "DEFAULT_COUNT", 4)


def assert_same(eraser: ge.GraphEraser, fresh: ge.GraphEraser) -> None:
    assert eraser.graph_.fingerprint == fresh.graph_.fingerprint
    mine, theirs = eraser.aggregator_.fitted.tensors, fresh.aggregator_.fitted.tensors
    assert mine.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert mine[name].tobytes() == tensor.tobytes(), name
    nodes = fresh.graph_.ids[fresh.graph_.types.of(fresh.graph_.ids) == 0]  # type: ignore[union-attr]
    assert np.array_equal(eraser.answers(nodes), fresh.answers(nodes))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_typed_sequences_leave_what_a_fit_on_the_raw_rest_gives(thinned: None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = world_of(rng, {"a": 24, "b": 15, "c": 4})
    eraser = ge.GraphEraser("closed-form", seed=seed).fit(built(world))
    for _ in range(5):
        changes, world = drawn(world, rng)
        eraser.update(changes)
        assert_same(eraser, ge.GraphEraser("closed-form", seed=seed).fit(built(world)))
    assert eraser.verify().identical


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_embeddings_of_typed_sequences_are_those_of_a_fit_on_the_raw_rest(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    world = world_of(rng, {"a": 24, "b": 15, "c": 4})
    arguments: World = {"width": 70, "steps": (0, 1, 1, 1), "neighbours": 3, "landmarks": 4}
    embedder = ge.Embedder(**arguments, seed=seed).fit(built(world))
    done = 0
    while done < 6:
        changes, after = drawn(world, rng)
        if any(isinstance(part, ge.Labels | ge.SetLabels) for part in changes):
            continue
        world, done = after, done + 1
        named = dict(zip(embedder.changes().ids.tolist(), embedder.changes().rows, strict=True))
        bare = [
            ge.AddNodes(part.ids, part.x, type="a") if isinstance(part, ge.AddNodes) else part
            for part in changes
        ]
        receipt = embedder.update(bare)
        index = ge.Embedder(**arguments, seed=seed).fit(built(world)).changes()
        left = embedder.changes()
        assert left.ids.tolist() == index.ids.tolist()
        assert left.rows.tobytes() == index.rows.tobytes()
        moved = set(embedder.graph_.names_of(receipt.changed).tolist())
        for name, row in zip(left.ids.tolist(), left.rows, strict=True):
            assert name in moved or row.tobytes() == named[name].tobytes()
    assert embedder.verify().identical


@pytest.mark.slow
def test_a_cascade_leaves_what_a_fit_without_all_of_it_gives(thinned: None) -> None:
    world = world_of(np.random.default_rng(9), {"a": 24, "b": 30, "c": 4})
    eraser = ge.GraphEraser("closed-form").fit(built(world))
    node = next(u for u, _ in world["e"][MAKES])
    plan = eraser.plan(ge.Nodes([node], cascade="b"))
    along = [int(str(n).removeprefix("b/")) for n in eraser.graph_.names_of(plan.removal.followers)]
    touched = {(s, u, v) for s in (MAKES, WANTS) for u, v in world["e"][s]}
    own = {v for _, u, v in touched if u == node}
    assert set(along) == {v for v in own if {u for _, u, w in touched if w == v} == {node}}
    assert not along or "exist only through" in " ".join(plan.notes)
    eraser.unlearn(ge.Nodes([node], cascade="b"))
    for each in along:
        forget_node(world, "b", each)
    forget_node(world, "a", node)
    assert_same(eraser, ge.GraphEraser("closed-form").fit(built(world)))


def test_a_typed_run_is_saved_loaded_and_its_receipts_are_checked(tmp_path: Any) -> None:
    world = world_of(np.random.default_rng(3), {"a": 24, "b": 15, "c": 4})
    with pytest.warns(UserWarning, match="closed form ignores the weights of relations"):
        eraser = ge.GraphEraser("closed-form").fit(built(world))
    u, v = next(iter(world["e"][KNOWS]))
    with pytest.raises(GraphError, match="only nodes of type 'a' are predicted"):
        eraser.predict(["b/0"])
    eraser.save(tmp_path / "run")
    loaded = ge.GraphEraser.load(tmp_path / "run")
    assert loaded.graph_.types == eraser.graph_.types
    tie = ge.Edges([(u, v)], type=KNOWS)
    receipt = loaded.unlearn([ge.Nodes([1], type="c"), ge.Nodes(["b/2"]), tie])
    for part in receipt.parts:
        part.check(None)
    low, high = sorted((u, v))
    assert {part.in_words for part in receipt.parts} == {
        "forget node c/1",
        "forget node b/2",
        f"forget edge a/{low}-a/{high} (knows)",
    }
    loaded.save(tmp_path / "run")
    assert ge.GraphEraser.load(tmp_path / "run").verify().identical


def test_one_step_has_to_do_where_a_schema_has_many_relations() -> None:
    few = ge.Graph.from_facts([("x", f"r{i}", "y") for i in range(4)])
    many = ge.Graph.from_facts([("x", f"r{i}", "y") for i in range(12)])
    assert few.types is not None
    assert many.types is not None
    assert len(paths.paths_of(few.types)) == 1 + 8 + 64
    assert len(paths.paths_of(many.types)) == 1 + 24


@pytest.mark.parametrize("kind", ["several", "numbers"])
def test_targets_of_typed_graphs_are_forgotten_as_exactly(kind: str) -> None:
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    rng = np.random.default_rng(5)
    x, ends = rng.normal(size=(60, 3)), rng.integers(20, size=(2, 60))
    drawn_y = (rng.random((60, 2)) < 0.4) if kind == "several" else rng.normal(size=(60, 1))
    y = drawn_y.astype(np.float32)

    def fitted(people: Any, things: Any) -> ge.GraphEraser:
        world = data.HeteroData()
        world["a"].x, world["a"].y = torch.tensor(x[people]).float(), torch.from_numpy(y[people])
        world["a"].node_id, world["b"].node_id = torch.tensor(people), torch.tensor(things)
        world["b"].num_nodes = len(things)
        for name, of in zip(("has", "wants"), ends, strict=True):
            kept = np.flatnonzero(np.isin(of[people], things))
            pairs = np.stack([kept, np.searchsorted(things, of[people][kept])])
            world["a", name, "b"].edge_index = torch.from_numpy(pairs)
        graph = ge.Graph.from_pyg(world, target="a", labels=kind)
        return ge.GraphEraser("closed-form").fit(graph)

    eraser = fitted(np.arange(60), np.arange(20))
    eraser.unlearn([ge.Nodes([3, 7], type="b"), ge.Nodes([5])])
    eraser.unlearn(ge.Nodes([8]))
    assert_same(eraser, fitted(np.delete(np.arange(60), [5, 8]), np.delete(np.arange(20), [3, 7])))
