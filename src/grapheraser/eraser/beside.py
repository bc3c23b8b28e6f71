"""Compiling in a second process, since numba compiles one function at a time in each.

The first fit on a machine compiles what shards need, while a second process compiles what the
closed-form members need. Both keep the results in one folder, where the other finds them. What the
second process leaves undone, should it fail, is compiled here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from grapheraser.graph.induced import induced_edges
from grapheraser.kernels.compiled import can_keep, is_kept

# It ends before garbage matters.
_CODE = """
import gc
gc.disable()
from grapheraser.eraser import GraphEraser
from grapheraser.eraser.warmup import warm_up_aloud
warm_up_aloud(GraphEraser(model="closed-form", members={members}).get_params(), {features})
"""


def is_worth_it() -> bool:
    """Whether next to nothing is compiled yet, with processors and a folder for two to do it."""
    # Every fit needs this kernel, and nothing needs it before.
    return not is_kept(induced_edges) and processors() > 1 and bool(sys.executable) and can_keep()


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def members_beside(members: Sequence[str], num_features: int) -> Iterator[Iterator[str]]:
    """Compile what these members need in another process, which ends with the context.

    Yields: the names of the kernels that it compiles, as they come; after the last it is through.
    """
    code = _CODE.format(members=list(members), features=num_features)
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield (line.strip() for line in process.stdout)
        finally:
            process.terminate()
