"""Compiled code is kept on disk, never run stale, and never in the way."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import grapheraser
from grapheraser.kernels import compiled as kernels
from grapheraser.kernels.compiled import source_digest

SOURCES = Path(grapheraser.__file__).parent
PRINT_A_HASH = """
import numpy as np
from grapheraser.graph.pages.packing import Rows
from grapheraser.graph.pages.pages import Pages
from grapheraser.kernels.neighbourhoods import ANY, chosen_around, places_for
ids, none = np.arange(4), np.zeros(4, dtype=np.int8)
rows = Rows(ids, ids, none, np.array([0, 3, 3, 3, 3]), ids[1:], np.zeros((4, 0), dtype=np.float32))
hashes, places = places_for(2)
chosen_around(Pages.of(rows).table, 0, ANY, np.uint64(1), hashes, places)
print(*hashes)
"""
USE_ALL = """
from grapheraser.cli import main
from grapheraser.kernels.compiled import compilations
for words in (
    ("warmup", "--models", "mlp"),
    ("fit", "demo", "--model", "mlp", "--shards", "3", "--out", RUN),
    ("predict", RUN, "--nodes", "1,2"),
    ("unlearn", RUN, "--nodes", "10"),
    ("fit", "demo", "--model", "mlp", "--shards", "3", "--partition", "blpa", "--out", RUN + "-2"),
):
    try:
        main(words)
    except SystemExit as stop:
        assert not stop.code
    print(len(compilations()))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package without compiled code."""
    copy = tmp_path / "site" / "grapheraser"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def printed(package: Path, code: str = PRINT_A_HASH, **variables: str) -> str:
    """What a fresh process with the copy of the package prints."""
    hidden = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PYTHONPATH": str(package.parent), "HOME": str(package.parent), **variables}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def kept(folder: Path) -> dict[str, int]:
    """When each file of compiled code was written."""
    return {file.name: file.stat().st_mtime_ns for file in sorted(folder.rglob("*.nbc"))}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.long
def test_an_edited_helper_in_another_file_is_never_run_stale(package: Path) -> None:
    folder = package / "__pycache__" / "kernels"
    first = printed(package)
    written = kept(folder)
    assert any("chosen_around" in name for name in written)
    assert printed(package) == first
    assert kept(folder) == written

    edit(package / "kernels" / "hashing.py", "mixed(a + b * GOLDEN)", "mixed(a + b * GOLDEN) + a")
    second = printed(package)
    assert second != first
    assert kept(folder).keys().isdisjoint(written)

    # A constant, in a module without any compiled function.
    edit(package / "seeding.py", "0x9E3779B97F4A7C15", "0x9E3779B97F4A7C17")
    assert printed(package) not in (first, second)


@pytest.mark.long
def test_a_package_that_nobody_can_write_to_uses_the_next_folder(package: Path) -> None:
    (package / "__pycache__").write_text("a file is in the way")
    places = {name: package.parent / name for name in ("chosen", "cache", "temporary")}
    places["temporary"].mkdir()
    variables = {
        "NUMBA_CACHE_DIR": str(places["chosen"]),
        "XDG_CACHE_HOME": str(places["cache"]),
        "TMPDIR": str(places["temporary"]),
    }
    expected = printed(package, **variables)
    assert [name for name, place in places.items() if kept(place)] == ["chosen"]
    del variables["NUMBA_CACHE_DIR"]
    assert printed(package, **variables) == expected
    assert kept(places["cache"])
    assert not kept(places["temporary"])
    variables["XDG_CACHE_HOME"] = str(package / "__pycache__" / "no folder")
    assert printed(package, **variables) == expected
    assert kept(places["temporary"])


@pytest.mark.long
def test_without_any_folder_functions_are_compiled_in_memory(package: Path) -> None:
    (package / "__pycache__").write_text("a file is in the way")
    nowhere = str(package / "__pycache__" / "no folder")
    no_temporary = "import tempfile\n\ndef none():\n    raise FileNotFoundError\n\n"
    code = f"{no_temporary}tempfile.gettempdir = none\n{PRINT_A_HASH}"
    assert printed(package, code, XDG_CACHE_HOME=nowhere, NUMBA_CACHE_DIR=nowhere)
    assert not kept(package.parent)


@pytest.mark.long
def test_a_temporary_folder_that_others_can_write_to_is_left_alone(package: Path) -> None:
    (package / "__pycache__").write_text("a file is in the way")
    variables = {"XDG_CACHE_HOME": str(package / "errors.py"), "TMPDIR": str(package.parent)}
    printed(package, **variables)
    (folder,) = package.parent.glob("grapheraser-*")
    for file in folder.iterdir():
        file.unlink()
    folder.chmod(0o777)
    printed(package, **variables)
    assert not kept(folder)


@pytest.mark.long
def test_a_damaged_file_is_compiled_anew(package: Path) -> None:
    expected = printed(package)
    for file in (package / "__pycache__" / "kernels").iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert printed(package) == expected
    for file in (package / "__pycache__" / "kernels").iterdir():
        file.write_bytes(b"cos\nnothing_of_that_name\n.")
    assert printed(package) == expected


@pytest.mark.long
def test_recompiling_removes_what_was_kept(package: Path) -> None:
    code = "from grapheraser.kernels.hashing import mixed\nmixed(5)\nmixed._cache.flush()\n"
    printed(package, code)
    assert not kept(package)


@pytest.mark.long
def test_after_a_warm_up_no_verb_compiles_in_a_package_that_nobody_can_write_to(
    package: Path,
) -> None:
    (package / "__pycache__").write_text("a file is in the way")
    chosen, run = package.parent / "chosen", package.parent / "run"
    variables = {"NUMBA_CACHE_DIR": str(chosen), "HOME": "/nonexistent"}
    counts = [
        int(line)
        for line in printed(package, f"RUN = {str(run)!r}{USE_ALL}", **variables).splitlines()
        if line.isdigit()
    ]
    assert len(counts) == 5
    assert counts[0] == len(kept(chosen)) > 20
    assert set(counts) == {counts[0]}


def test_every_kernel_of_the_package_is_declared_with_compiled() -> None:
    for file in SOURCES.rglob("*.py"):
        if file.name != "compiled.py":
            assert not re.search(r"\bnjit\b|numba\.jit", file.read_text()), file


def test_the_digest_of_a_module_covers_what_it_imports() -> None:
    inner, outer = "grapheraser.kernels.hashing", "grapheraser.kernels.neighbourhoods"
    assert source_digest(inner) == source_digest(inner) != source_digest(outer)


def test_a_module_without_a_source_has_no_digest() -> None:
    assert source_digest("grapheraser.kernels.nowhere") == ""


@pytest.mark.long
def test_what_is_compiled_is_announced_and_recorded_and_what_is_read_is_not(package: Path) -> None:
    code = (
        "from grapheraser.kernels.compiled import compilations, watched\n"
        "from grapheraser.kernels.hashing import mixed\n"
        "seen = []\n"
        "with watched(seen.append):\n"
        "    mixed(5)\n"
        "mixed(5.0 > 4)\n"
        "print(seen, [(c.kernel, c.folder.name, c.seconds > 0) for c in compilations()])"
    )
    done = ("seeding.mixed", "kernels", True)
    assert printed(package, code) == f"{['seeding.mixed']} {[done, done]}\n"
    assert printed(package, code) == "[] []\n"


def test_a_kernel_is_compiled_by_one_process_at_a_time(tmp_path: Path) -> None:
    claim = tmp_path / "kernel.nbc.claim"
    assert kernels._claimed(claim)
    assert claim.read_text() == str(os.getpid())
    claim.write_text(str(os.getppid()))
    assert not kernels._claimed(claim), "another process has it"


def test_nobody_waits_for_a_claim_of_a_process_that_is_gone_or_slow(tmp_path: Path) -> None:
    claim = tmp_path / "kernel.nbc.claim"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    claim.write_text(str(ended.pid))
    assert kernels._claimed(claim)
    claim.write_text(str(os.getppid()))
    long_ago = claim.stat().st_mtime - 1000
    os.utime(claim, (long_ago, long_ago))
    assert kernels._claimed(claim)
    assert kernels._claimed(tmp_path / "no folder" / "kernel.nbc.claim")


@pytest.mark.slow
def test_a_claim_goes_with_the_compilation(package: Path) -> None:
    printed(package)
    assert kept(package)
    assert not list(package.rglob("*.claim"))
