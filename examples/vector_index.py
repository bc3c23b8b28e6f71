"""Vector indexes that follow an embedding: FAISS, LanceDB and pgvector.

    python examples/vector_index.py runs/rows faiss
    python examples/vector_index.py runs/rows lancedb index.lance
    python examples/vector_index.py runs/rows pgvector postgresql://localhost/people

Each index upserts the rows that moved and drops those who are gone. After that the forgotten one is
in no answer, and the index holds what one built afresh holds. A backup or an old version of an
index still has the old rows: let go of those as well (LanceDB keeps versions until `optimize`,
PostgreSQL dead rows until `VACUUM`, which `drop` asks for).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Protocol

import numpy as np

import grapheraser as ge


class Index(Protocol):
    """As much of an index as it takes to follow an embedding."""

    def upsert(self, ids: Any, rows: Any) -> None:
        """Take rows over, in place of those with the same ids."""

    def drop(self, ids: Any) -> None:
        """Forget these rows, and whatever is left of rows that were replaced."""

    def ids(self) -> list[int]:
        """Return the ids that are there."""

    def nearest(self, row: Any, count: int) -> list[int]:
        """Return the ids of the rows with the largest products."""


def fill(embedder: ge.Embedder, index: Index) -> ge.Changes:
    """Fill an empty index; keep what is returned, or its ``version`` and ``log``."""
    return follow(embedder, index, None)


def follow(embedder: ge.Embedder, index: Index, last: ge.Changes | None) -> ge.Changes:
    """Bring an index to the version of an embedding; ``last`` is what it took over before."""
    told = {} if last is None else {"since": last.version, "log": last.log}
    delta = embedder.changes(**told)  # type: ignore[arg-type]
    index.upsert(delta.ids, delta.rows)
    index.drop(delta.gone(np.array(index.ids(), dtype=np.int64)))
    return delta


class Faiss:
    """An exact index in memory; for others, wrap them in `IndexIDMap2` likewise."""

    def __init__(self, width: int) -> None:
        import faiss

        self._index = faiss.IndexIDMap2(faiss.IndexFlatIP(width))
        self._to_array = faiss.vector_to_array

    def upsert(self, ids: Any, rows: Any) -> None:
        self._index.remove_ids(ids)
        self._index.add_with_ids(rows, ids)

    def drop(self, ids: Any) -> None:
        self._index.remove_ids(ids)

    def ids(self) -> list[int]:
        found: list[int] = self._to_array(self._index.id_map).tolist()
        return found

    def nearest(self, row: Any, count: int) -> list[int]:
        found: list[int] = self._index.search(row[None], count)[1][0].tolist()
        return found


class LanceDB:
    """A table in a folder."""

    def __init__(self, folder: str, width: int) -> None:
        import lancedb
        import pyarrow as pa

        vector = pa.list_(pa.float32(), width)
        schema = pa.schema([("id", pa.int64()), ("row", vector)])
        self._table = lancedb.connect(folder).create_table("rows", schema=schema, exist_ok=True)
        self._schema, self._pa = schema, pa

    def upsert(self, ids: Any, rows: Any) -> None:
        flat = self._pa.array(np.ascontiguousarray(rows).reshape(-1))
        columns = [
            self._pa.array(ids, self._pa.int64()),
            self._pa.FixedSizeListArray.from_arrays(flat, rows.shape[1]),
        ]
        table = self._pa.table(columns, schema=self._schema)
        change = self._table.merge_insert("id")
        change.when_matched_update_all().when_not_matched_insert_all().execute(table)

    def drop(self, ids: Any) -> None:
        if len(ids):
            self._table.delete(f"id IN ({', '.join(map(str, ids.tolist()))})")
        # Earlier versions of the table hold rows that are gone.
        self._table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)

    def ids(self) -> list[int]:
        found: list[int] = self._table.to_arrow()["id"].to_pylist()
        return found

    def nearest(self, row: Any, count: int) -> list[int]:
        search: Any = self._table.search(row, vector_column_name="row")
        return [found["id"] for found in search.distance_type("dot").limit(count).to_list()]


class PgVector:
    """A table in PostgreSQL with the extension ``vector``."""

    def __init__(self, url: str, width: int) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True)
        self._execute("CREATE EXTENSION IF NOT EXISTS vector")
        self._execute(
            f"CREATE TABLE IF NOT EXISTS rows (id bigint PRIMARY KEY, row vector({width}))"
        )

    def _execute(self, text: str, *given: Any) -> Any:
        return self._connection.execute(text, given)  # type: ignore[arg-type, unused-ignore]

    def upsert(self, ids: Any, rows: Any) -> None:
        put = "INSERT INTO rows VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET row = EXCLUDED.row"
        pairs: Iterable[tuple[int, str]] = zip(
            ids.tolist(), (str(row.tolist()) for row in rows), strict=True
        )
        with self._connection.cursor() as cursor:
            cursor.executemany(put, list(pairs))

    def drop(self, ids: Any) -> None:
        self._execute("DELETE FROM rows WHERE id = ANY(%s)", ids.tolist())
        self._execute("VACUUM rows")

    def ids(self) -> list[int]:
        return [node for (node,) in self._execute("SELECT id FROM rows ORDER BY id").fetchall()]

    def nearest(self, row: Any, count: int) -> list[int]:
        asked = "SELECT id FROM rows ORDER BY row <#> %s LIMIT %s"
        return [node for (node,) in self._execute(asked, str(row.tolist()), count).fetchall()]

    def close(self) -> None:
        self._connection.close()


def main(run: str, kind: str, *where: str) -> None:
    """Fill an index from a run, and show who is near its first node."""
    embedder = ge.Embedder.load(run)
    made = {"faiss": Faiss, "lancedb": LanceDB, "pgvector": PgVector}
    index: Index = made[kind](*where, embedder.width)
    filled = fill(embedder, index)
    first = embedder.transform(filled.ids[:1])[0]
    print(f"{len(filled)} rows of version {filled.version}; near {filled.ids[0]}:")
    print(index.nearest(first, 5))


if __name__ == "__main__":
    main(*sys.argv[1:])
