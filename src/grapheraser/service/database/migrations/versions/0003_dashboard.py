"""Sessions of the dashboard, and how good each version was when it was published."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_sessions"),
        sa.ForeignKeyConstraint(["key"], ["api_keys.id"], name="fk_sessions_key"),
    )
    op.create_index("ix_sessions_key", "sessions", ["key"])
    op.create_table(
        "scores",
        sa.Column("run", sa.String(200), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("nodes", sa.BigInteger, nullable=False),
        sa.Column("edges", sa.BigInteger, nullable=False),
        sa.Column("f1", sa.Float),
        sa.PrimaryKeyConstraint("run", "version", name="pk_scores"),
    )
