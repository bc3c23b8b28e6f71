"""Try GraphEraser as newcomers, operators and auditors would: their pages, typed in as they are.

    python -m tools.trial [STEP ...]      # all of STEPS, or these

Every step gets an empty folder, and runs the installed command and Python in processes of their
own. What a step needs and is not there (a browser, pandas) is said, and the step left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.notebooks import read, text_of, tutorials

import grapheraser as ge

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```(python|sh)[^\n]*\n(.*?)^```(?:\n+```text\n(.*?)^```)?", re.M | re.S)
# What differs from one time to the next: times, dates, digests.
_VARIES = re.compile(r"[\d.]+ (?:ms|s|min)\b|\d{4}-\d\d-\d\dT[\d:+]+|\b[0-9a-f]{16,}|\.\.\.")
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 300
# What the guide to the service prints, in the order of the page.
_GUIDE = (
    r'"items": ?3',
    r"handed out  handed-out/receipt-\w+-0001\.json",
    r"state       completed",
    r"receipt: valid",
    r'"model_version": ?"1"',
    r"node 12 is not in the graph",
    r"bit for bit|identical|verified",
)


class Failed(Exception):  # noqa: N818 - an outcome, like Skipped
    """A step that does not do what its page says."""


class Skipped(Exception):  # noqa: N818
    """A step that needs something that is not there."""


# -- the steps -------------------------------------------------------------------------------------


def readme(folder: Path) -> None:
    """Run the Python of the README as one script."""
    code = [code for kind, code, _ in _BLOCK.findall((ROOT / "README.md").read_text())
            if kind == "python"]  # fmt: skip
    _python("\n".join(code), folder)


def start_page(folder: Path) -> None:
    """Type in the page for newcomers, and compare what it prints."""
    steps = _BLOCK.findall((ROOT / "docs/start.md").read_text().split("## Fit")[1])
    commands = [(command, expected) for kind, command, expected in steps if kind == "sh"]
    _check(len(commands) == 5, "the page has five steps")
    for command, expected in commands:
        printed = _plain(_shell(command, folder, COLUMNS="80"))
        _check(printed == _plain(expected), f"{command}\nprints\n" + "\n".join(printed))


def service_guide(folder: Path) -> None:
    """Type in the guide to the service, from a fit to a verified receipt."""
    if shutil.which("curl") is None:
        raise Skipped("needs curl")
    found = _BLOCK.findall((ROOT / "docs/service-guide.md").read_text())
    blocks = [command for kind, command, _ in found if kind == "sh"]
    _check(len(blocks) >= 10, "the guide has its commands")
    leaving = "trap 'kill $(jobs -p) 2>/dev/null || :' EXIT"
    port = str(_free_port())
    printed = _shell(
        "\n".join([leaving, *blocks]),
        folder,
        GRAPHERASER_SERVICE_PORT=port,
        GRAPHERASER_SERVICE_WINDOW="0",
        GRAPHERASER_URL=f"http://127.0.0.1:{port}",
    )
    at = 0
    for expected in _GUIDE:
        match = re.compile(expected).search(printed, at)
        _check(match is not None, f"{expected!r} is not in\n{printed[at:]}")
        at = 0 if match is None else match.end()


def notebooks_twice(folder: Path) -> None:
    """Run tutorials in one folder, all of them twice, as somebody does who goes back."""
    wanted = ("first-deletion", "erasure-request")
    for path in [path for path in tutorials() if path.stem in wanted] * 2:
        cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
        _python("\n".join(text_of(cell["source"]) for cell in cells), folder)


def pandas(folder: Path) -> None:
    """Fit a table of people as pandas gives it: words, booleans, gaps; forget one of them."""
    if find_spec("pandas") is None:
        raise Skipped("needs pandas")
    _python(_PANDAS, folder)


_PANDAS = """
import pandas as pd
import grapheraser as ge

people = pd.DataFrame({
    "id": [f"p{n}" for n in range(60)],
    "city": [("Oslo", "Rome", "Lima")[n % 3] for n in range(60)],
    "age": pd.array([None if n % 10 == 0 else 20 + n for n in range(60)], dtype="Int64"),
    "group": [("red", "blue")[n % 2] for n in range(60)],
})
ties = pd.DataFrame({
    "source": people["id"], "target": people["id"].shift(-1, fill_value="p0"),
})
table = pd.get_dummies(people, columns=["city"])
assert table["city_Oslo"].dtype == bool
graph = ge.Graph.from_tables(table, ties, id="id", label="group", missing="zero")
assert graph.num_features >= 4, graph
eraser = ge.GraphEraser(num_shards=3, epochs=2).fit(graph)
receipt = eraser.unlearn(ge.Nodes(["p7"]))
assert eraser.verify().identical
print(receipt.statement, eraser.predict(["p8"]))
"""


def auditors_copy(folder: Path) -> None:
    """Verify a copy of a run where there are no private keys, with the public one."""
    _shell("grapheraser fit demo --shards 4 --epochs 5 --out run --quiet", folder)
    _shell("grapheraser unlearn run --nodes 12 --receipts handed-out", folder)
    _shell("grapheraser keys --export operator.pub", folder)
    _shell("grapheraser receipts run --checkpoint --out checkpoint", folder)
    elsewhere = folder / "auditor"
    shutil.copytree(folder / "run", elsewhere / "run")
    for name in ("operator.pub", "checkpoint"):
        shutil.copy(folder / name, elsewhere)
    said = _shell(
        "grapheraser verify run --key operator.pub --checkpoint checkpoint",
        elsewhere,
        GRAPHERASER_KEYS=str(elsewhere / "no-keys"),
    )
    _check("identical" in said, said)
    _check(not (elsewhere / "no-keys").exists(), "an auditor needs no keys of his own")


def dashboard_download(folder: Path) -> None:
    """Forget a node on the dashboard, download its receipt, and verify that offline."""
    chromium = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if chromium is None or find_spec("playwright") is None:
        raise Skipped("needs Chromium and Playwright")
    from playwright.sync_api import sync_playwright

    _shell("grapheraser fit demo --shards 4 --epochs 5 --out people --quiet", folder)
    with _served(folder / "people", folder) as (url, key), sync_playwright() as playwright:
        root = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=root)
        page = browser.new_page(base_url=url)
        page.set_default_timeout(60_000)
        page.goto("/dashboard/sign-in")
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/dashboard")
        client = ge.Client(url, key)
        asked = client.wait(client.submit(nodes=[12, 99])["id"])
        page.goto(f"/dashboard/requests/{asked['id']}")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the receipt").click()
        download.value.save_as(folder / "receipt.json")
        browser.close()
        _check(len(client.verify(client.receipt(asked["id"]))) == 2, "both parts are valid")
    _shell("grapheraser keys --export operator.pub", folder)
    said = _shell("grapheraser receipt verify receipt.json --key operator.pub", folder)
    _check("receipts: 2 of 2 valid" in said, said)


STEPS: dict[str, Callable[[Path], None]] = {
    step.__name__.replace("_", "-"): step
    for step in (
        readme,
        start_page,
        service_guide,
        notebooks_twice,
        pandas,
        auditors_copy,
        dashboard_download,
    )
}


# -- how they are run ------------------------------------------------------------------------------


@contextmanager
def _served(run: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """A service in a process of its own: where it is, and its first key."""
    command = [sys.executable, "-m", "grapheraser", "serve", str(run), "--port", "0", "--json"]
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=_environment(folder)
        )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while (line := process.stdout.readline()) not in ("}\n", ""):
            lines.append(line)
        if not lines:
            raise Failed((folder / "serve.log").read_text())
        said: dict[str, Any] = json.loads("".join([*lines, "}"]))
        yield said["url"], said["key"]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _environment(folder: Path, **more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "GRAPHERASER_KEYS": str(folder / "keys"), **more}


def _shell(script: str, folder: Path, **more: str) -> str:
    return _done(["bash", "-c", f"set -euo pipefail\n{script}"], folder, more)


def _python(code: str, folder: Path) -> str:
    return _done([sys.executable, "-c", code], folder, {})


def _done(command: Sequence[str], folder: Path, more: dict[str, str]) -> str:
    """Run a command to its end; return what it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode or "Traceback" in done.stderr:
        raise Failed(f"{command[-1]}\nends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _check(holds: bool, said: str) -> None:
    if not holds:
        raise Failed(said)


def _plain(text: str) -> list[str]:
    return [_VARIES.sub("*", line).rstrip() for line in text.strip().splitlines()]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main(names: Sequence[str]) -> int:
    """Run steps, and say how each went; return how many failed."""
    if odd := [name for name in names if name not in STEPS]:
        print(f"there is no step {odd[0]}. Choose from: {', '.join(STEPS)}.")
        return 1
    failed = 0
    for name in names or STEPS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                STEPS[name](Path(folder))
                outcome = "ok"
            except Skipped as why:
                outcome = f"left out: {why}"
            except Failed as why:
                outcome, failed = f"FAILED\n{why}", failed + 1
        print(f"{name:<20} {time.monotonic() - began:6.1f} s  {outcome}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
