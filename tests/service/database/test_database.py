"""Both databases: migrations make the tables, rows of the log stay, and deleted rows go."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from grapheraser.errors import DatabaseError, ParameterError
from grapheraser.service.database import Database, tables
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import RequestContent
from grapheraser.service.queue.vault import Vault


def test_migrations_make_the_tables_of_the_code(database: Database) -> None:
    with database.reading() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, tables.METADATA) == []


def test_migrations_are_applied_once_by_many(url: str) -> None:
    failures: list[BaseException] = []

    def open_database() -> None:
        try:
            Database.opened(url).dispose()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=open_database) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    database = Database.opened(url)
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    database.dispose()
    with pytest.raises(DatabaseError, match="newer version of GraphEraser"):
        Database.opened(url)


@pytest.mark.parametrize("table", tables.APPEND_ONLY)
@pytest.mark.parametrize("change", ["UPDATE {} SET run = 'other'", "DELETE FROM {}"])
def test_rows_of_the_log_are_refused_to_change_by_the_database(
    queue: Queue, table: str, change: str
) -> None:
    queue.submit(RequestContent(nodes=(1,)))
    with queue.database.writing() as connection:
        connection.execute(
            sa.insert(tables.LOG), [{"run": "r", "size": 1, "digest": "d", "envelope": "{}"}]
        )
        connection.execute(
            sa.insert(tables.TOMBSTONES), [{"run": "r", "size": 1, "key": "k", "mark": "m"}]
        )
    with (
        pytest.raises(DatabaseError, match="never changed or deleted"),
        queue.database.writing() as connection,
    ):
        connection.execute(sa.text(change.format(table)))
    with queue.database.reading() as connection:
        rows = connection.execute(sa.text(f"SELECT run FROM {table}")).scalars().all()
    assert rows in (["r"], ["run-1"])


def test_sqlite_leaves_no_byte_of_what_was_deleted(tmp_path: Path) -> None:
    database = Database.opened(sqlite_url(tmp_path / "queue.db"))
    queue = Queue(database, "run-1", Vault(bytes(32)))
    many = [queue.submit(RequestContent(nodes=tuple(range(n, n + 200)))).request for n in range(20)]
    with database.reading() as connection:
        sealed = connection.execute(sa.select(tables.REQUESTS.c.sealed)).scalars().all()
    assert len(sealed) == 20

    def found() -> int:
        content = b"".join(file.read_bytes() for file in tmp_path.glob("queue.db*"))
        return sum(part[20:60] in content for part in sealed if part is not None)

    assert found() == 20
    for request in many:
        queue.cancel(request.id)
    assert found() == 0


def test_sqlite_is_set_to_lose_nothing(tmp_path: Path) -> None:
    database = Database.opened(sqlite_url(tmp_path / "queue.db"))
    with database.reading() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1} | {
        "foreign_keys": 1
    }


def test_a_purge_that_a_reader_is_in_the_way_of_says_so(tmp_path: Path) -> None:
    database = Database.opened(sqlite_url(tmp_path / "queue.db"))
    queue = Queue(database, "run-1", Vault(bytes(32)))
    with database.reading() as connection:
        connection.execute(sa.select(tables.REQUESTS)).all()
        queue.submit(RequestContent(nodes=(1,)))
        assert not database.purge()
    assert database.purge()


@pytest.mark.parametrize(
    "url", ["", "mysql://localhost/x", "sqlite://", "sqlite:///:memory:", "nonsense"]
)
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(ParameterError):
        Database(url)


def test_an_unreachable_server_is_an_error_without_the_password() -> None:
    database = Database("postgresql://ada:secret-word@127.0.0.1:9/none?connect_timeout=1")
    with pytest.raises(DatabaseError) as caught, database.reading():
        pass
    assert not re.search("secret-word", str(caught.value))
