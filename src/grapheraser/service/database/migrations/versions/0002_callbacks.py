"""Callbacks of OpenDSR."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "callbacks",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("told", sa.Integer, nullable=False, server_default="0"),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("next_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_callbacks"),
        sa.ForeignKeyConstraint(["request"], ["requests.id"], name="fk_callbacks_request"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_callbacks_request", "callbacks", ["request"])
