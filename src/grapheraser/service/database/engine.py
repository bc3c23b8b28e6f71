"""A database by URL: how it is opened, migrated, written to, and how its errors are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from grapheraser.errors import DatabaseError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

# SQLite, for every connection. A commit is on the disk before it returns; deleted rows are
# overwritten; whoever finds the database locked waits so many milliseconds.
_PRAGMAS = {
    "busy_timeout": 30_000,
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "secure_delete": "ON",
    "foreign_keys": "ON",
}
_PURGE_MILLISECONDS = 500
_POOL = {"pool_size": 8, "max_overflow": 24, "pool_timeout": 30}
# PostgreSQL: the locks under which migrations are applied, and events are numbered.
_MIGRATING, _NUMBERING = 0x6772_6170_6801, 0x6772_6170_6802


class Database:
    """A connection pool and the differences between the two kinds of database.

    Args:
        url: ``sqlite:///PATH`` or ``postgresql://...``.
    """

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
        """The database with all migrations applied."""
        database = cls(url)
        database.migrate()
        return database

    @property
    def engine(self) -> Engine:
        return self._engine

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database and changes nothing."""
        with self._translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed as a whole, or not at all."""
        with self._translated(), self._engine.connect() as plain:
            connection = plain.execution_options(immediate=True)
            with connection.begin():
                yield connection

    def in_order(self, connection: Connection) -> None:
        """From here to the commit, let nobody else number events: numbers then follow commits."""
        if not self.is_sqlite:  # SQLite has one writer at a time
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_NUMBERING)))

    def migrate(self) -> None:
        """Bring the tables up to date; several processes may do so at once."""
        from grapheraser.service.database.migrate import upgrade

        with self._translated(), self._engine.connect() as plain:
            connection = plain.execution_options(immediate=True)
            with connection.begin():
                if not self.is_sqlite:
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATING)))
                upgrade(connection)

    def purge(self) -> bool:
        """Let what was deleted leave the files of the database; False where it has to wait.

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
                    raw.cursor().execute(f"PRAGMA busy_timeout={_PRAGMAS['busy_timeout']}")
                    raw.close()
                return not busy
            with self._engine.connect() as plain:
                connection = plain.execution_options(isolation_level="AUTOCOMMIT")
                for table in ("requests", "parts", "subjects"):
                    connection.exec_driver_sql(f"VACUUM {table}")
            return True

    def copy_to(self, file: Path) -> None:
        """Write a consistent copy of a SQLite database to a file that does not exist yet."""
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
        """Errors of the driver as a `DatabaseError`, without the values that they may quote."""
        try:
            yield
        except DBAPIError as error:
            raise DatabaseError(
                f"the database can't be used: {_said(error)}.",
                hint="is it reachable, writable and not full? Nothing was changed.",
            ) from None
        except SQLAlchemyError as error:
            raise DatabaseError(f"the database can't be used: {type(error).__name__}.") from None


def _said(error: DBAPIError) -> str:
    """The first line of what the driver says. PostgreSQL quotes values from the second one on."""
    lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
    return lines[0].rstrip(".")


def _sqlite(url: sa.URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise ParameterError("the queue lies in a file: sqlite:///PATH. Got a database in memory.")
    engine = sa.create_engine(url, connect_args={"timeout": 30}, hide_parameters=True, **_POOL)

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where `_begin` says
        for name, value in _PRAGMAS.items():
            connection.execute(f"PRAGMA {name}={value}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _postgresql(url: sa.URL) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of("psycopg", "postgres", "a PostgreSQL database") from error
    driver = url.set(drivername="postgresql+psycopg")
    return sa.create_engine(driver, pool_pre_ping=True, hide_parameters=True, **_POOL)


def sqlite_url(path: Path) -> str:
    """The URL of the database in a file."""
    return f"sqlite:///{path.absolute()}"
