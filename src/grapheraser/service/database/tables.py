"""The tables; `migrations` makes the same in a database.

Times are seconds since 1970 in UTC, for people; what comes first is said by numbers that the
database counts up. Whatever names somebody is sealed or marked by `service.vault`.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
# SQLite counts up in an INTEGER alone.
NUMBER = BigInteger().with_variant(Integer, "sqlite")
# Rows of these are never changed or deleted: the database refuses it.
APPEND_ONLY = ("events", "log", "tombstones")

RUNS = Table(
    "runs",
    METADATA,
    Column("name", String(200), primary_key=True),  # of its log
    Column("succeeds", String(200)),  # of the log of the run that it was restored from
    Column("seen", Float, nullable=False),
)

BATCHES = Table(
    "batches",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("run", String(200), nullable=False, index=True),
    Column("state", String(20), nullable=False),
    Column("size", BigInteger),  # of the run's log before it
    Column("receipt", String(64)),  # digest of its receipt, noted before the run is saved
    Column("begun", Float, nullable=False),
)

REQUESTS = Table(
    "requests",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", String(64), nullable=False, unique=True),
    Column("run", String(200), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("owner", String(64)),
    Column("sealed", LargeBinary),  # what it asks for; gone when it is completed or cancelled
    Column("mark", String(64)),  # keyed hash of the same, to tell a repetition; goes with it
    Column("idempotency", String(64)),  # keyed hash of the client's key
    Column("counts", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("received", Float, nullable=False),
    Column("deadline", Float, nullable=False),
    Column("completed", Float),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("reason", Text),
    Column("retry_at", Float),
    Column("batch", String(64), ForeignKey("batches.id"), index=True),
    Column("version", BigInteger),
    UniqueConstraint("run", "idempotency"),
    Index("ix_requests_waiting", "run", "state", "number"),
    sqlite_autoincrement=True,
)

PARTS = Table(
    "parts",
    METADATA,
    Column("request", String(64), ForeignKey("requests.id"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("until", Float, nullable=False),  # when it is destroyed, collected or not
)

EVENTS = Table(
    "events",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("run", String(200), nullable=False),
    Column("request", String(64), nullable=False, index=True),
    Column("state", String(20), nullable=False),
    Column("at", Float, nullable=False),
    Column("version", BigInteger),
    Column("reason", Text),
    sqlite_autoincrement=True,
)

LOG = Table(
    "log",
    METADATA,
    Column("run", String(200), primary_key=True),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("envelope", Text, nullable=False),
)

SUBJECTS = Table(
    "subjects",
    METADATA,
    Column("run", String(200), primary_key=True),
    Column("subject", String(64), primary_key=True),  # keyed hash of the identity
    Column("item", String(64), primary_key=True),  # keyed hash of a node, edge, feature row, label
    Column("node", String(64), nullable=False),  # keyed hash of the node that it is about
    Column("other", String(64)),  # and of the other end, where it is an edge
    Column("sealed", LargeBinary, nullable=False),  # what it is
    Index("ix_subjects_run_item", "run", "item"),
    Index("ix_subjects_run_node", "run", "node"),
    Index("ix_subjects_run_other", "run", "other"),
)

TOMBSTONES = Table(
    "tombstones",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("run", String(200), nullable=False, index=True),
    Column("size", BigInteger, nullable=False),  # of the run's log after the erasure
    Column("key", String(20), nullable=False),  # name of the key
    Column("mark", String(64), nullable=False),
    sqlite_autoincrement=True,
)

API_KEYS = Table(
    "api_keys",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("name", String(200), nullable=False),
    Column("made", Float, nullable=False),
    Column("revoked", Float),
)

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("digest", String(64), primary_key=True),  # of the token in the cookie
    Column("key", String(64), ForeignKey("api_keys.id"), nullable=False, index=True),
    Column("until", Float, nullable=False),
)

SCORES = Table(
    "scores",
    METADATA,
    Column("run", String(200), primary_key=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("nodes", BigInteger, nullable=False),
    Column("edges", BigInteger, nullable=False),
    Column("f1", Float),  # of the test nodes; none where there are none
)
