"""Changes as they are written in a file: one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from grapheraser.cli.arguments import read_lines
from grapheraser.errors import InputError, ParameterError

if TYPE_CHECKING:
    from grapheraser.graph import GraphChange


def read_changes(path: Path, num_features: int) -> list[GraphChange]:
    """Read a file of changes, ``-`` for stdin; see `docs/changes.md` for what a line looks like.

    Args:
        path: of the file.
        num_features: columns of the graph, for rows that name their columns.
    """
    from grapheraser.graph.lines import changes_of

    changes: list[GraphChange] = []
    for place, line in read_lines(path, "changes"):
        try:
            changes += changes_of(json.loads(line), num_features)
        except InputError as error:
            raise type(error)(f"{place}: {error.message}", hint=error.hint) from error
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"{place}: not a JSON object ({error}).") from error
    return changes
