"""Other processors, as far as this one can act like them: by what its libraries compute with.

Engine cpu, the closed-form members and links without shards have the recorded bits there. What
torch trains has others, and is exact all the same.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from grapheraser.environment import torch_processor
from tests.property.golden import FILE

ROOT = Path(__file__).parents[2]
# As a processor without wide vectors compiles and multiplies, and with another number of threads.
OTHER = {
    "ATEN_CPU_CAPABILITY": "default",
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "OPENBLAS_CORETYPE": "Prescott",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
}
# As one of the last generation but one, of either make; compiled code is this processor's own.
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    # The mathematics library of C as without fused multiplications. Not above: generic code would
    # have it do all of them, a hundred times as slowly.
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL",
}
PROCESSORS = {
    "none": OTHER,
    "intel": {**AVX2, "OPENBLAS_CORETYPE": "Haswell"},
    "amd": {**AVX2, "OPENBLAS_CORETYPE": "Zen"},
}
RECORDED = """
import json
from tests.property.golden import portable_cases
print(json.dumps({name: compute() for name, compute in portable_cases()}))
"""
BY_TORCH = """
import json, sys
import grapheraser as ge
from tests.property.golden import digest, digest_of_links, machine
from tests.strategies import TwoHops

def state(eraser):
    return (digest if isinstance(eraser, ge.GraphEraser) else digest_of_links)(eraser)

graph = ge.load_dataset("demo")
requests = [ge.Nodes([3, 1200]), ge.Edges([graph.edges[17].tolist()]), ge.Features([77, 78])]
few = {"num_shards": 3, "epochs": 2}
found = {"machine": machine()}
for name, eraser in {
    "gat": ge.GraphEraser("gat", engine="pyg", **few),
    "own": ge.GraphEraser(TwoHops, **few),
    "links": ge.LinkEraser("both", width=8, **few),
}.items():
    if sys.argv[1] == "afresh":
        eraser.fit(graph.without(requests))
    else:
        eraser.fit(graph).unlearn(requests)
    found[name] = state(eraser)
print(json.dumps(found))
"""
x86 = platform.machine().lower() in ("x86_64", "amd64")
vectors = not str(torch_processor("cpu")).endswith("DEFAULT")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not x86, reason="only x86 processors can act like others"),
    pytest.mark.skipif(not vectors, reason="this one has nothing that others might lack"),
]
every_processor = pytest.mark.parametrize("processor", PROCESSORS)


def there(changes: dict[str, str], code: str, *arguments: str) -> dict[str, str]:
    """Run code in another environment; returns the JSON that it prints."""
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **changes, "PYTHONPATH": paths},
        cwd=ROOT,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@every_processor
def test_states_have_the_recorded_bits_on_another_processor(processor: str, tmp_path: Path) -> None:
    changes = PROCESSORS[processor]
    if "NUMBA_CPU_NAME" in changes:  # compiled for another one: not for keeps
        changes = {**changes, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert there(changes, RECORDED) == json.loads(FILE.read_text())["states"]


@every_processor
def test_what_torch_trains_is_exact_on_every_processor(processor: str) -> None:
    changes = {k: v for k, v in PROCESSORS[processor].items() if not k.startswith("NUMBA_")}
    unlearned = there(changes, BY_TORCH, "unlearned")
    assert unlearned == there(changes, BY_TORCH, "afresh")
    assert unlearned["machine"] not in json.loads(FILE.read_text())["machines"]
