"""Tables whose rows the database itself refuses to change or delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_REFUSED = "rows of {table} are never changed or deleted"
_FUNCTION = """
CREATE OR REPLACE FUNCTION grapheraser_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME;
END $$
"""


def protect(connection: Connection, table: str) -> None:
    """Let rows be added to a table, and nothing else."""
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
