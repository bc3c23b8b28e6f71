"""What a request may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from grapheraser.errors import InputError, NothingToForgetError, ParameterError
from grapheraser.service.queue.requests import FINAL, NEXT, RequestContent, State


@pytest.mark.parametrize(
    "asked",
    [
        {"nodes": [1, 2]},
        {"subject": "ada@example.org"},
        {"edges": [[1, 2], ["a", "b"]], "features": [3], "labels": ["c"]},
        {"changes": [{"add_edges": {"pairs": [[1, 2]]}}]},
    ],
)
def test_what_was_asked_can_be_written_and_read_back(asked: dict[str, Any]) -> None:
    assert RequestContent(**asked).to_dict() == asked


@pytest.mark.parametrize(
    "asked",
    [
        {"nodes": "12"},
        {"nodes": [1.5]},
        {"nodes": [True]},
        {"nodes": [-1]},
        {"nodes": [2**63]},
        {"nodes": [""]},
        {"nodes": 3},
        {"edges": [1, 2]},
        {"edges": [[1, 2, 3, 4]]},
        {"subject": ""},
        {"subject": 4},
        {"changes": [{}]},
        {"changes": {"nodes": [1]}},
        {"nodes": [1], "changes": [{"nodes": [1]}]},
        {"people": [1]},
    ],
)
def test_anything_else_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        RequestContent(**asked)


@pytest.mark.parametrize("asked", [{}, {"nodes": []}])
def test_an_empty_request_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(NothingToForgetError) as caught:
        RequestContent(**asked)
    assert isinstance(caught.value, InputError)


def test_what_is_named_twice_counts_once() -> None:
    assert RequestContent(nodes=(1, 2, 1)).counts == {"nodes": 2}


def test_every_state_but_the_final_ones_leads_on_to_a_final_one() -> None:
    for start in State:
        reached, waiting = {start}, [start]
        while waiting:
            for state in NEXT[waiting.pop()] - reached:
                reached.add(state)
                waiting.append(state)
        assert (reached & {*FINAL}) or start in FINAL
    assert all(not NEXT[state] for state in FINAL)
