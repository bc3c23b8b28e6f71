"""Using run folders in a process of its own, so that a crash there is an outcome here."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import traceback
from pathlib import Path

import grapheraser as ge
from grapheraser.eraser import load_eraser
from grapheraser.errors import GraphEraserError


class Worker:
    """Uses run folders in a process of its own, so that a crash there is an outcome here."""

    def __init__(self, seconds: float = 30.0) -> None:
        self.seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._used = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def outcome(self, path: Path) -> str:
        """``fine``, ``refused: ...`` or else ``raw: ...``, ``signal ...``, ``hangs``."""
        if self._process is None:
            self._process = self._started()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        # The first folder may have to wait for the compiler.
        patience = self.seconds if self._used else 10 * self.seconds
        self._used = True
        if not select.select([process.stdout], [], [], patience)[0]:
            self.__exit__()
            return "hangs"
        said = process.stdout.readline()
        if said:
            return str(json.loads(said))
        code = process.wait()
        self._process = None
        return f"signal {-code}" if code < 0 else f"exit {code}"

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", "from tests.store.worker import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )


def serve() -> None:
    """Answer each folder that is named on a line with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(_used(Path(line.rstrip("\n")))) + "\n")
        answers.flush()


def _used(path: Path) -> str:
    """Load a run, ask it, check it and change it."""
    try:
        run = load_eraser(path)
        nodes = run.graph_.ids[:5]
        if isinstance(run, ge.LinkEraser):
            run.predict_proba([nodes[:2]])
            run.rank(int(nodes[0]), top=3)
        elif run.classifier is not None:
            run.classifier.predict_proba(nodes)
            run.classifier.explain(int(nodes[0]))
        run.verify()
        list(run.receipts_)
        run.unlearn(ge.Nodes(nodes[:1]))
        run.save(path)
    except GraphEraserError as error:
        return f"refused: {error.message}"
    except BaseException:
        return f"raw: {traceback.format_exc(limit=-3)}"
    return "fine"
