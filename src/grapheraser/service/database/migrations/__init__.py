"""What Alembic runs; see `migrate`."""
