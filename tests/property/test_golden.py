"""The same bits as when `golden.json` was recorded.

What torch trains is compared where torch computes as it did there, and skipped elsewhere: its
arithmetic is not ours to promise. That it is exact on every machine, `test_processors` shows.
"""

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
    machine,
    trained_by_torch,
    typed_cases,
    typed_digests,
)

GOLDEN = json.loads(FILE.read_text())
CUDA = json.loads(FILE.with_name("golden_cuda.json").read_text())


def recorded(name: str, options: dict[str, Any]) -> dict[str, str]:
    """The recorded digests of a case; skips one that torch trains where none are recorded."""
    states: dict[str, dict[str, str]] = GOLDEN["states"]
    if trained_by_torch(options):
        here, machines = machine(), GOLDEN["machines"]
        if here not in machines:
            pytest.skip(f"torch has bits of its own here ({here}); recorded: {'; '.join(machines)}")
        states = machines[here]
    return states[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(*case, marks=pytest.mark.long if trained_by_torch(case[1]) else ())
        for case in cases()
    ],
    ids=lambda value: str(value)[:40],
)
def test_states_have_the_recorded_bits(name: str, options: dict[str, Any]) -> None:
    expected = recorded(name, options)
    assert digests(options) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), list(link_cases()), ids=lambda value: str(value)[:40])
def test_link_runs_have_the_recorded_bits(name: str, options: dict[str, Any]) -> None:
    expected = recorded(name, options)
    assert link_digests(options) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"), list(typed_cases()), ids=lambda value: str(value)[:40]
)
def test_typed_graphs_and_facts_have_the_recorded_bits(name: str, options: dict[str, Any]) -> None:
    expected = recorded(name, options)
    assert typed_digests(options) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"), list(cases(("cuda",))), ids=lambda value: str(value)[:40]
)
def test_states_from_a_gpu_have_the_recorded_bits(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or "H200" not in torch.cuda.get_device_name():
        pytest.skip("recorded on an H200")
    assert digests(options) == CUDA[name]
