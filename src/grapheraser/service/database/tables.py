"""The tables; `migrations` creates the same ones in a database.

Times are seconds since 1970 in UTC, for people; the order of rows is given by numbers that the
database counts up. Whatever names somebody is sealed or marked by `service.queue.vault`.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
# SQLite counts up in an INTEGER alone.
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# Tables whose rows the database refuses to change or delete.
APPEND_ONLY = ("events", "log", "tombstones")

RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("name", sa.String(200), primary_key=True),  # of its log
    sa.Column("succeeds", sa.String(200)),  # of the log of the run that it was restored from
    sa.Column("seen", sa.Float, nullable=False),
)

BATCHES = sa.Table(
    "batches",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("run", sa.String(200), nullable=False, index=True),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("size", sa.BigInteger),  # of the run's log before it
    sa.Column("receipt", sa.String(64)),  # digest of its receipt, noted before the run is saved
    sa.Column("begun", sa.Float, nullable=False),
)

REQUESTS = sa.Table(
    "requests",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(64), nullable=False, unique=True),
    sa.Column("run", sa.String(200), nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("owner", sa.String(64)),
    sa.Column("sealed", sa.LargeBinary),  # what it asks for; gone when it is completed or cancelled
    sa.Column("mark", sa.String(64)),  # keyed hash of the same, to tell a repetition; goes with it
    sa.Column("idempotency", sa.String(64)),  # keyed hash of the client's key
    sa.Column("counts", sa.JSON, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("received", sa.Float, nullable=False),
    sa.Column("deadline", sa.Float, nullable=False),
    sa.Column("completed", sa.Float),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("reason", sa.Text),
    sa.Column("retry_at", sa.Float),
    sa.Column("batch", sa.String(64), sa.ForeignKey("batches.id"), index=True),
    sa.Column("version", sa.BigInteger),
    sa.UniqueConstraint("run", "idempotency"),
    sa.Index("ix_requests_waiting", "run", "state", "number"),
    sqlite_autoincrement=True,
)

PARTS = sa.Table(
    "parts",
    METADATA,
    sa.Column("request", sa.String(64), sa.ForeignKey("requests.id"), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("until", sa.Float, nullable=False),  # when it is destroyed, collected or not
)

EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("run", sa.String(200), nullable=False),
    sa.Column("request", sa.String(64), nullable=False, index=True),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("version", sa.BigInteger),
    sa.Column("reason", sa.Text),
    sqlite_autoincrement=True,
)

LOG = sa.Table(
    "log",
    METADATA,
    sa.Column("run", sa.String(200), primary_key=True),
    sa.Column("size", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("envelope", sa.Text, nullable=False),
)

SUBJECTS = sa.Table(
    "subjects",
    METADATA,
    sa.Column("run", sa.String(200), primary_key=True),
    sa.Column("subject", sa.String(64), primary_key=True),  # keyed hash of the identity
    # Keyed hash of a node, edge, feature row or label.
    sa.Column("item", sa.String(64), primary_key=True),
    sa.Column("node", sa.String(64), nullable=False),  # keyed hash of the node that it is about
    sa.Column("other", sa.String(64)),  # and of the other end, where it is an edge
    sa.Column("sealed", sa.LargeBinary, nullable=False),  # what it is
    sa.Index("ix_subjects_run_item", "run", "item"),
    sa.Index("ix_subjects_run_node", "run", "node"),
    sa.Index("ix_subjects_run_other", "run", "other"),
)

TOMBSTONES = sa.Table(
    "tombstones",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("run", sa.String(200), nullable=False, index=True),
    sa.Column("size", sa.BigInteger, nullable=False),  # of the run's log after the erasure
    sa.Column("key", sa.String(20), nullable=False),  # name of the key
    sa.Column("mark", sa.String(64), nullable=False),
    sqlite_autoincrement=True,
)

API_KEYS = sa.Table(
    "api_keys",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("made", sa.Float, nullable=False),
    sa.Column("revoked", sa.Float),
)

SESSIONS = sa.Table(
    "sessions",
    METADATA,
    sa.Column("digest", sa.String(64), primary_key=True),  # of the token in the cookie
    sa.Column("key", sa.String(64), sa.ForeignKey("api_keys.id"), nullable=False, index=True),
    sa.Column("until", sa.Float, nullable=False),
)

SCORES = sa.Table(
    "scores",
    METADATA,
    sa.Column("run", sa.String(200), primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("nodes", sa.BigInteger, nullable=False),
    sa.Column("f1", sa.Float),  # of the test nodes; none where there are none
)

COSIGNED = sa.Table(
    "cosigned",
    METADATA,
    sa.Column("run", sa.String(200), primary_key=True),
    sa.Column("size", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("note", sa.Text, nullable=False),  # a checkpoint, with what witnesses have signed
)

CALLBACKS = sa.Table(
    "callbacks",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("request", sa.String(64), sa.ForeignKey("requests.id"), nullable=False, index=True),
    # The URL, and what the controller calls it.
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("told", sa.Integer, nullable=False, server_default="0"),  # of its statuses
    # Since the last that worked.
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_at", sa.Float, nullable=False),
    sqlite_autoincrement=True,
)


_REFUSED = "rows of {table} are never changed or deleted"
_FUNCTION = """
CREATE OR REPLACE FUNCTION grapheraser_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME;
END $$
"""


def protect(connection: Connection, table: str) -> None:
    """Make a table append-only: rows can be added, and never changed or deleted."""
    if connection.dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSED.format(table=table)}'); END"
            )
        return
    connection.exec_driver_sql(_FUNCTION.replace("%", "%%"))
    for verb, each in (("UPDATE OR DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
        name = verb.split()[0].lower()
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_no_{name} BEFORE {verb} ON {table} "
            f"FOR EACH {each} EXECUTE FUNCTION grapheraser_append_only()"
        )
