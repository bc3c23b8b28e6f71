"""Run by Alembic: applies migrations on the connection that it is given."""

from __future__ import annotations

from alembic import context

from grapheraser.service.database.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,
    transaction_per_migration=False,
    render_as_batch=True,
)
context.run_migrations()
