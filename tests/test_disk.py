"""Only the store touches the disk, and a few places by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import grapheraser as ge

PACKAGE = Path(ge.__file__).parent
# Functions and methods that read, write or list files, by their last name.
DISK = re.compile(
    "open|fdopen|memfd_create|NamedTemporaryFile|TemporaryDirectory|TemporaryFile|mkdtemp|mkstemp"
    "|read_text|read_bytes|write_text|write_bytes|touch|mkdir|makedirs|unlink|rmdir|rmtree"
    "|rename|symlink_to|hardlink_to|copytree|copyfile|copy2|glob|rglob|iterdir|listdir|scandir|walk"
    "|fromfile|tofile|memmap|load_npz|save_npz|savetxt|loadtxt|savez|savez_compressed"
    "|save_file|load_file"
)
# Names that are harmless but of these modules.
OF_MODULES = {
    "os": {"replace", "remove", "link", "truncate"},
    "np": {"load", "save"},
    "torch": {"load", "save"},
}
ALLOWED = {
    "store": "the disk of a run, and every file that the package writes",
    "datasets": "reads data sets",
    "graph/formats/npz.py": "reads and writes a graph that the caller names",
    "graph/formats/tables.py": "reads tables that the caller names",
    "graph/formats/ogb.py": "reads a folder that the caller names",
    "graph/pages/stored.py": "maps a folder that the caller names",
    "graph/formats/known.py": "reads what the caller names, to tell its format",
    "untrusted.py": "opens every file that others may have made, for all rooms",
    "graphs": "reads collections that the caller names, and a stylesheet of the package",
    "receipts/secret.py": "the folder of keys, and the secrets in it",
    "embeddings/changes.py": "writes rows to a file that the caller names",
    "recommendation/interactions.py": "reads interactions that the caller names",
    "environment.py": "asks the system which processor this is",
    "cli/demo.py": "a folder for the run of a demonstration, where nobody named one",
    "cli/datasets.py": "opens the graph store that it has made",
    "cli/output.py": "writes to the null device once nobody reads the output",
    "kernels/compiled.py": "the cache of compiled kernels, which holds no data",
    "service/dashboard/static.py": "reads the files of Swagger UI from their package",
    "service/database/engine.py": "makes the file of a SQLite database, for its owner alone",
    "partition/multilevel.py": "hands a graph to KaMinPar, in memory where the system can",
}
# Reading from or writing to bytes in memory, or to the network.
IN_MEMORY = ("BytesIO", "buffer", "Image.open", "build_opener")


def disk_calls(source: str) -> Iterator[str]:
    """Calls in a module's source that touch the disk, each with its line."""
    tree = ast.parse(source)
    ours = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("grapheraser.store")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called, text = ast.unparse(node.func), ast.unparse(node)
        owner, _, name = called.rpartition(".")
        touches = DISK.fullmatch(name) or name in OF_MODULES.get(owner, ())
        if touches and called not in ours and not any(part in text for part in IN_MEMORY):
            yield f"{node.lineno}: {text}"


def test_only_the_store_touches_the_disk() -> None:
    used, refused = set(), []
    for module in sorted(PACKAGE.rglob("*.py")):
        name = module.relative_to(PACKAGE).as_posix()
        places = {place for place in ALLOWED if name == place or name.startswith(f"{place}/")}
        calls = list(disk_calls(module.read_text()))
        if places and calls:
            used |= places
        else:
            refused += [f"{name}:{call}" for call in calls]
    assert refused == []
    assert used == set(ALLOWED), "some place is allowed without need"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("Path('run').read_bytes()", ["1: Path('run').read_bytes()"]),
        ("with open(path) as file: pass", ["1: open(path)"]),
        ("import os\nos.replace(a, b)", ["2: os.replace(a, b)"]),
        ("np.load(io.BytesIO(content))", []),
        ("text.replace('a', 'b')", []),
        ("from grapheraser.store import write_text; write_text(path, '')", []),
    ],
)
def test_a_call_that_touches_the_disk_is_noticed(source: str, found: list[str]) -> None:
    assert list(disk_calls(source)) == found
