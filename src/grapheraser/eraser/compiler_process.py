"""Compile in a subprocess what a first run will use, while this process fits it.

numba compiles one function at a time in each process. So the first fit on a machine starts a second
process, which rehearses the run on a tiny graph (see `eraser.warmup`): the members' fits in the
opposite order, so that both meet in the middle, and then the requests, which no fit waits for. Both
keep what they compile in one folder, where the other finds it, and wait for a kernel that the other
has begun (see `kernels.compiled`). What the subprocess leaves undone is compiled here.

It ends by itself, some seconds after the fit, and nobody waits for it.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from typing import Any

from grapheraser.aggregation import log_linear
from grapheraser.kernels.compiled import can_keep, is_kept

# It ends before garbage matters.
_CODE = """
import gc, pickle, sys
gc.disable()
pickle.load(sys.stdin.buffer).run_ahead()
"""


def is_first_use() -> bool:
    """Return whether next to nothing is compiled yet: not even what every pool needs."""
    return not is_kept(log_linear._solve)


def start(rehearsal: Any) -> subprocess.Popen[bytes] | None:
    """Have a rehearsal ``run_ahead`` in another process, where there is a processor for it."""
    if processors() < 2 or not sys.executable or not can_keep():
        return None
    try:
        content = pickle.dumps(rehearsal)
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(content)
    except (OSError, pickle.PicklingError, AttributeError, TypeError):
        return None  # this process compiles what it needs
    atexit.register(_leave, process)
    return process


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Let a process end by itself, without Python's warning that it still runs."""
    if process.poll() is None:
        process.returncode = 0


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
