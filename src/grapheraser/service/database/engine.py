"""A database by URL: opens, migrates and writes to it, and translates its errors."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from grapheraser.errors import DatabaseError, MissingExtraError, ParameterError
from grapheraser.store.files import PRIVATE_FILE

# SQLite, for every connection. A commit is on the disk before it returns; deleted rows are
# overwritten; a connection that finds the database locked waits so many milliseconds.
_BUSY_MILLISECONDS = 30_000
_PRAGMAS = {
    "busy_timeout": _BUSY_MILLISECONDS,
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "secure_delete": "ON",
    "foreign_keys": "ON",
}
_PURGE_MILLISECONDS = 500
_MAX_VALUES = 500  # in one statement
_POOL = {"pool_size": 8, "max_overflow": 24, "pool_timeout": 30}
# PostgreSQL: the locks under which migrations are applied, and events are numbered.
_MIGRATING, _NUMBERING = 0x6772_6170_6801, 0x6772_6170_6802
Value = TypeVar("Value")


class Database:
    """A connection pool for ``sqlite:///PATH`` or ``postgresql://...``, and their differences."""

    def __init__(self, url: str) -> None:
        try:
            parsed = sa.make_url(url)
        except ArgumentError as error:
            raise ParameterError(
                "the URL of a database must be sqlite:///PATH or postgresql://USER@HOST/NAME."
            ) from error
        self.url = parsed
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self._engine = _sqlite(parsed)
        elif parsed.get_backend_name() == "postgresql":
            self._engine = _postgresql(parsed)
        else:
            raise ParameterError(
                "the service keeps its queue in sqlite or postgresql. "
                f"Got {parsed.get_backend_name()}."
            )

    @classmethod
    def opened(cls, url: str) -> Database:
        """Open a database and apply all migrations."""
        database = cls(url)
        try:
            database.migrate()
        except BaseException:
            database.dispose()
            raise
        return database

    @property
    def engine(self) -> Engine:
        return self._engine

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a transaction that sees one state of the database and changes nothing."""
        with self._translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Begin a transaction that is committed as a whole, or not at all."""
        with self._translated(), self._engine.connect() as plain:
            after: list[Callable[[], None]] = []
            connection = plain.execution_options(immediate=True, after=after)
            with connection.begin():
                yield connection
        for call in after:
            call()

    def rows(self, query: sa.Executable) -> Sequence[Any]:
        """Return the rows of a query, in a transaction of its own."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def scalar(self, query: sa.Executable) -> Any:
        """Return the one value of a query, None where there is none."""
        with self.reading() as connection:
            return connection.execute(query).scalar()

    def change(self, statement: sa.Update | sa.Delete | sa.Insert) -> int:
        """Execute a statement in a transaction of its own; return how many rows it changed."""
        with self.writing() as connection:
            return connection.execute(statement).rowcount

    def after_commit(self, connection: sa.Connection, call: Callable[[], None]) -> None:
        """Call this once the transaction of `writing` is committed."""
        connection.get_execution_options()["after"].append(call)

    def in_order(self, connection: Connection) -> None:
        """Let nobody else number events until the commit, so that numbers follow commits."""
        if not self.is_sqlite:  # SQLite has one writer at a time
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_NUMBERING)))

    def migrate(self) -> None:
        """Bring the tables up to date; several processes may do so at once."""
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        with self._translated(), self._engine.connect() as plain:
            connection = plain.execution_options(immediate=True)
            with connection.begin():
                if not self.is_sqlite:
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATING)))
                config.attributes["connection"] = connection
                try:
                    command.upgrade(config, "head")
                except CommandError as error:  # a revision that this version does not have
                    raise DatabaseError(
                        "the database was brought up to date by a newer version of GraphEraser.",
                        hint="install that version again; docs/upgrading.md says how to go back.",
                    ) from error

    def purge(self) -> bool:
        """Remove deleted data from the files of the database; return False where that has to wait.

        SQLite: overwritten pages are moved from the journal into the file, and the journal is
        emptied; a reader may be in the way. PostgreSQL: dead rows are vacuumed; its own journal
        (WAL) is out of reach.
        """
        with self._translated():
            if self.is_sqlite:
                raw = self._engine.raw_connection()
                try:
                    cursor = raw.cursor()
                    cursor.execute(f"PRAGMA busy_timeout={_PURGE_MILLISECONDS}")
                    busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                finally:
                    raw.cursor().execute(f"PRAGMA busy_timeout={_BUSY_MILLISECONDS}")
                    raw.close()
                return not busy
            with self._engine.connect() as plain:
                connection = plain.execution_options(isolation_level="AUTOCOMMIT")
                for table in ("requests", "parts", "subjects"):
                    connection.exec_driver_sql(f"VACUUM {table}")
            return True

    def copy_to(self, file: Path) -> None:
        """Write a consistent copy of a SQLite database to a file that does not exist yet."""
        _make_private(file)
        with self._translated():
            raw = self._engine.raw_connection()
            try:
                raw.cursor().execute("VACUUM INTO ?", (str(file),))
            finally:
                raw.close()

    def dispose(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of the driver as a `DatabaseError`, without the values that they quote."""
        try:
            yield
        except DBAPIError as error:
            # PostgreSQL quotes values from the second line on.
            lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
            raise DatabaseError(
                f"the database can't be used: {lines[0].rstrip('.')}.",
                hint="is it reachable, writable and not full? Nothing was changed.",
            ) from None
        except SQLAlchemyError as error:
            raise DatabaseError(f"the database can't be used: {type(error).__name__}.") from None


def _set_pragma(connection: Any, name: str, value: object) -> None:
    """Set a pragma; try again while another connection switches the journal, which never waits."""
    deadline = time.monotonic() + _BUSY_MILLISECONDS / 1000
    while True:
        try:
            connection.execute(f"PRAGMA {name}={value}")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _sqlite(url: sa.URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise ParameterError("the queue lies in a file: sqlite:///PATH. Got a database in memory.")
    file = Path(url.database)
    engine = sa.create_engine(url, connect_args={"timeout": 30}, hide_parameters=True, **_POOL)

    @event.listens_for(engine, "do_connect")
    def _connecting(*_: Any) -> None:
        _make_private(file)

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where `_begin` says
        for name, value in _PRAGMAS.items():
            _set_pragma(connection, name, value)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _make_private(file: Path) -> None:
    """Let nobody else read a database; its journals have the mode of the file."""
    with suppress(OSError):  # SQLite says what is wrong, if anything is
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
        for one in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            if one.exists() and stat.S_IMODE(one.stat().st_mode) & 0o077:
                one.chmod(PRIVATE_FILE)


def _postgresql(url: sa.URL) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of("psycopg", "postgres", "a PostgreSQL database") from error
    driver = url.set(drivername="postgresql+psycopg")
    return sa.create_engine(driver, pool_pre_ping=True, hide_parameters=True, **_POOL)


def sqlite_url(path: Path) -> str:
    """Return the URL of the database in a file."""
    return f"sqlite:///{path.absolute()}"


def blocks(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Split values into groups that fit into one statement."""
    return (values[at : at + _MAX_VALUES] for at in range(0, len(values), _MAX_VALUES))
