"""Engine cpu and the closed-form members have the same bits on another processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.property.golden import FILE

ROOT = Path(__file__).parents[2]
# As a processor without wide vectors compiles and multiplies, and with another number of threads.
OTHER = {
    "ATEN_CPU_CAPABILITY": "default",
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
CODE = """
import json, sys
from tests.property.golden import cases, digests
wanted = sys.argv[1:]
print(json.dumps({name: digests(options) for name, options in cases() if name in wanted}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["closed-form", "cpu gcn"])
def test_states_have_the_recorded_bits_on_another_processor(name: str, tmp_path: Path) -> None:
    recorded = json.loads(FILE.read_text())["states"]
    environment = {
        **os.environ,
        **OTHER,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "NUMBA_CACHE_DIR": str(tmp_path),  # compiled for another processor: not for keeps
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE, name],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        check=True,
    )
    assert json.loads(done.stdout) == {name: recorded[name]}
