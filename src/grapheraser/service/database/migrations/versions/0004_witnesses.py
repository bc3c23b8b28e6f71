"""Checkpoints that witnesses have cosigned; and no more edges of versions, which tell degrees."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; destroy the column."""
    op.create_table(
        "cosigned",
        sa.Column("run", sa.String(200), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run", "size", name="pk_cosigned"),
    )
    op.drop_column("scores", "edges")
