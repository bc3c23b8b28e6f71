"""Migrations, which Alembic runs for `Database.migrate`."""
