"""The same bits as when `golden.json` was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.property.golden import (
    FILE,
    cases,
    digests,
    link_cases,
    link_digests,
    platform_of_pyg,
)

GOLDEN = json.loads(FILE.read_text())
CUDA = json.loads(FILE.with_name("golden_cuda.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), list(cases()), ids=lambda value: str(value)[:40])
def test_states_have_the_recorded_bits(name: str, options: dict[str, Any]) -> None:
    if options.get("engine") == "pyg" and platform_of_pyg() != GOLDEN["pyg on"]:
        pytest.skip(f"recorded on {GOLDEN['pyg on']}; engine pyg has other bits here")
    assert digests(options) == GOLDEN["states"][name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), list(link_cases()), ids=lambda value: str(value)[:40])
def test_link_runs_have_the_recorded_bits(name: str, options: dict[str, Any]) -> None:
    if options["members"] != "closed-form" and platform_of_pyg() != GOLDEN["pyg on"]:
        pytest.skip(f"recorded on {GOLDEN['pyg on']}; encoders have other bits here")
    assert link_digests(options) == GOLDEN["states"][name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"), list(cases(("cuda",))), ids=lambda value: str(value)[:40]
)
def test_states_from_a_gpu_have_the_recorded_bits(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or "H200" not in torch.cuda.get_device_name():
        pytest.skip("recorded on an H200")
    assert digests(options) == CUDA[name]
