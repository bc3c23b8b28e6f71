"""What the verbs of the service have in common: where its database and its settings are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from grapheraser.service.settings import Settings

DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", help="URL of the queue's database; default SQLite beside the run."),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="TOML file with settings; see docs/service.md.")
]


def service_settings(config: Path | None, **given: Any) -> Settings:
    """The settings by options, variables and file; an error where the extra is not installed."""
    from grapheraser.service import needs_extra

    needs_extra()
    from grapheraser.service.settings import Settings

    return Settings.read(config, **given)
