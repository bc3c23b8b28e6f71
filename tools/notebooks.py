"""Execute the tutorials, and store what they print; or write one as Markdown.

    python -m tools.notebooks            # docs/tutorials/*.ipynb, all of them

A cell whose output differs from one run to the next, because it has times, sizes or random names in
it, carries the tag ``varies``; tests compare the output of all others.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
VARIES = "varies"
_SECONDS = 300  # at the most for one cell, compilation included


def tutorials() -> list[Path]:
    """All notebooks, in the order of their names."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """A notebook as it is stored."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def executed(path: Path, folder: Path) -> dict[str, Any]:
    """A notebook with what its cells print now.

    Args:
        path: of the notebook.
        folder: the working directory of its kernel.
    """
    import nbformat
    from nbclient import NotebookClient

    untyped: Any = nbformat
    notebook = untyped.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(
        notebook,
        kernel_name="python3",
        resources=resources,
        startup_timeout=_SECONDS,
        timeout=_SECONDS,
    ).execute()
    return tidied(notebook)


def tidied(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook with nothing in it that changes without its content."""
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        tags = cell["metadata"].get("tags")
        kept = {
            "cell_type": cell["cell_type"],
            "id": f"cell-{number}",
            "metadata": {"tags": list(tags)} if tags else {},
            "source": _lines(text_of(cell["source"])),
        }
        if cell["cell_type"] == "code":
            kept |= {"execution_count": None, "outputs": _outputs(cell["outputs"])}
        cells.append(kept)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _outputs(outputs: list[Any]) -> list[dict[str, Any]]:
    """Return what is printed and shown, but for progress on stderr."""
    kept: list[dict[str, Any]] = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            if output["name"] == "stdout":
                text = _lines(text_of(output["text"]))
                kept.append({"name": "stdout", "output_type": "stream", "text": text})
        else:
            data = {
                mime: _lines(text_of(value))
                for mime, value in sorted(output["data"].items())
                if mime in ("text/plain", "image/svg+xml")
            }
            kept.append(
                {"data": data, "metadata": {}, "output_type": kind}
                | ({"execution_count": None} if kind == "execute_result" else {})
            )
    return kept


def text_of(source: Any) -> str:
    """Text that a notebook has as one string, or as its lines."""
    return source if isinstance(source, str) else "".join(source)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def stored(notebook: dict[str, Any]) -> str:
    """The file of a notebook."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def printed(cell: dict[str, Any]) -> str:
    """All text that a cell printed and showed."""
    parts = []
    for output in cell.get("outputs", []):
        shown = output["text"] if "text" in output else output["data"].get("text/plain", "")
        parts.append(text_of(shown))
    return "".join(parts)


def as_markdown(notebook: dict[str, Any], name: str) -> str:
    """A notebook as a page, with a link to the file itself."""
    parts = []
    for cell in notebook["cells"]:
        source = text_of(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            drawing = text_of(output.get("data", {}).get("image/svg+xml", ""))
            shown = printed({"outputs": [output]}).rstrip()
            parts.append(drawing or f"```{{.text .output}}\n{shown}\n```")
    title, _, rest = "\n\n".join(parts).partition("\n")
    download = f"*Every cell is executed by a test. [Download the notebook]({name}.ipynb).*"
    return f"{title}\n\n{download}\n{rest}\n"


def main() -> None:
    """Execute all tutorials, or those that are named, and store them."""
    import tempfile

    for path in [Path(word) for word in sys.argv[1:]] or tutorials():
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(stored(executed(path, Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
