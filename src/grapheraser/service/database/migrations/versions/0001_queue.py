"""The queue: requests, batches, parts, events, the log, subjects, tombstones, API keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from grapheraser.service.database.tables import protect

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _number() -> sa.Column[int]:
    return sa.Column("number", _NUMBER, primary_key=True, autoincrement=True)


def _text(name: str, length: int = 64, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=null)


def _time(name: str, *, null: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Float, nullable=null)


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "runs",
        _text("name", 200),
        _text("succeeds", 200, null=True),
        _time("seen"),
        sa.PrimaryKeyConstraint("name", name="pk_runs"),
    )
    _requests()
    _records()
    _people()
    for table in ("events", "log", "tombstones"):
        protect(op.get_bind(), table)


def _requests() -> None:
    op.create_table(
        "batches",
        _text("id"),
        _text("run", 200),
        _text("state", 20),
        sa.Column("size", sa.BigInteger),
        _text("receipt", null=True),
        _time("begun"),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
    )
    op.create_index("ix_batches_run", "batches", ["run"])
    op.create_table(
        "requests",
        _number(),
        _text("id"),
        _text("run", 200),
        _text("kind", 20),
        _text("owner", null=True),
        sa.Column("sealed", sa.LargeBinary),
        _text("mark", null=True),
        _text("idempotency", null=True),
        sa.Column("counts", sa.JSON, nullable=False),
        _text("state", 20),
        _time("received"),
        _time("deadline"),
        _time("completed", null=True),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("reason", sa.Text),
        _time("retry_at", null=True),
        _text("batch", null=True),
        sa.Column("version", sa.BigInteger),
        sa.UniqueConstraint("id", name="uq_requests_id"),
        sa.UniqueConstraint("run", "idempotency", name="uq_requests_run_idempotency"),
        sa.ForeignKeyConstraint(["batch"], ["batches.id"], name="fk_requests_batch"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_requests_waiting", "requests", ["run", "state", "number"])
    op.create_index("ix_requests_batch", "requests", ["batch"])
    op.create_table(
        "parts",
        _text("request"),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        _time("until"),
        sa.PrimaryKeyConstraint("request", "place", name="pk_parts"),
        sa.ForeignKeyConstraint(["request"], ["requests.id"], name="fk_parts_request"),
    )


def _records() -> None:
    op.create_table(
        "events",
        _number(),
        _text("run", 200),
        _text("request"),
        _text("state", 20),
        _time("at"),
        sa.Column("version", sa.BigInteger),
        sa.Column("reason", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_request", "events", ["request"])
    op.create_table(
        "log",
        _text("run", 200),
        sa.Column("size", sa.BigInteger, nullable=False, autoincrement=False),
        _text("digest"),
        sa.Column("envelope", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run", "size", name="pk_log"),
    )
    op.create_table(
        "tombstones",
        _number(),
        _text("run", 200),
        sa.Column("size", sa.BigInteger, nullable=False),
        _text("key", 20),
        _text("mark"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tombstones_run", "tombstones", ["run"])


def _people() -> None:
    op.create_table(
        "subjects",
        _text("run", 200),
        _text("subject"),
        _text("item"),
        _text("node"),
        _text("other", null=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("run", "subject", "item", name="pk_subjects"),
    )
    for column in ("item", "node", "other"):
        op.create_index(f"ix_subjects_run_{column}", "subjects", ["run", column])
    op.create_table(
        "api_keys",
        _text("id"),
        _text("digest"),
        _text("role", 20),
        _text("name", 200),
        _time("made"),
        _time("revoked", null=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("digest", name="uq_api_keys_digest"),
    )
