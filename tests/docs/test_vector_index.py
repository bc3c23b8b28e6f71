"""examples/vector_index.py against the indexes themselves, where they are installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from tests.service.postgres import running

EXAMPLE = Path(__file__).parents[2] / "examples" / "vector_index.py"
WIDTH = 16


@pytest.fixture(scope="module")
def recipes() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("vector_index", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["vector_index"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["vector_index"]


class Rows(dict[int, Any]):
    """An index of one's own, where none is installed."""

    def upsert(self, ids: Any, rows: Any) -> None:
        self.update(zip(ids.tolist(), rows, strict=True))

    def drop(self, ids: Any) -> None:
        for node in ids.tolist():
            del self[node]

    def ids(self) -> list[int]:
        return list(self)

    def nearest(self, row: Any, count: int) -> list[int]:
        return sorted(self, key=lambda node: -float(self[node] @ row))[:count]


@pytest.fixture(params=["own", "faiss", "lancedb", "pgvector"])
def make(request: pytest.FixtureRequest, recipes: Any, tmp_path: Path) -> Iterator[Any]:
    """A function that makes an empty index."""
    made: Callable[[str], Any]
    if request.param == "own":
        yield lambda name: Rows()
        return
    if request.param == "pgvector":
        psycopg = pytest.importorskip("psycopg")
        with running(vectors=True) as server:
            try:
                with psycopg.connect(server.new_database(), autocommit=True) as connection:
                    connection.execute("CREATE EXTENSION vector SCHEMA public")
            except psycopg.errors.Error as error:
                pytest.skip(f"PostgreSQL has no extension 'vector' ({type(error).__name__})")
            with ExitStack() as opened:
                yield lambda name: opened.enter_context(
                    closing(recipes.PgVector(server.new_database() + ",public", WIDTH))
                )
        return
    pytest.importorskip(request.param)
    if request.param == "faiss":
        made = lambda name: recipes.Faiss(WIDTH)  # noqa: E731
    else:
        made = lambda name: recipes.LanceDB(str(tmp_path / name), WIDTH)  # noqa: E731
    yield made


def test_an_index_that_followed_equals_one_built_afresh(recipes: Any, make: Any) -> None:
    graph = ge.load_dataset("demo")
    embedder = ge.Embedder(width=WIDTH, landmarks=64).fit(graph)
    index = make("followed")
    last = recipes.fill(embedder, index)
    gone = graph.ids[[3, 70]].tolist()
    rows = embedder.transform(gone)
    assert all(node in index.nearest(row, 50) for node, row in zip(gone, rows, strict=True))
    embedder.unlearn(ge.Nodes(gone[:1]))
    last = recipes.follow(embedder, index, last)
    assert len(last) < graph.num_nodes
    embedder.unlearn(ge.Nodes(gone[1:]))
    last = recipes.follow(embedder, index, last)
    fresh = make("fresh")
    recipes.fill(ge.Embedder(width=WIDTH, landmarks=64).fit(embedder.graph_), fresh)
    assert sorted(index.ids()) == sorted(fresh.ids()) == embedder.graph_.ids.tolist()
    for row in np.concatenate([rows, embedder.transform(graph.ids[10:40])]):
        found = index.nearest(row, 10)
        assert not set(gone) & set(found)
        products = [embedder.transform(some) @ row for some in (found, fresh.nearest(row, 10))]
        assert np.allclose(np.sort(products[0]), np.sort(products[1]), atol=1e-5)
