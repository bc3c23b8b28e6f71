"""What a short run leaves out or draws fewer examples of, the rest runs in full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import REST, SHORT, few_examples, part_of


@settings(max_examples=40)
@given(st.integers())
def drawn_often(_: int) -> None: ...


@settings(max_examples=2)
@given(st.integers())
def drawn_twice(_: int) -> None: ...


def drawn_never() -> None: ...


@dataclass(frozen=True)
class Item:
    """As much of a collected test as decides about its part."""

    obj: Callable[..., None]
    long: bool

    def get_closest_marker(self, name: str) -> bool:
        return name == "long" and self.long


ITEMS: Any = [
    Item(test, long) for test in (drawn_often, drawn_twice, drawn_never) for long in (False, True)
]


def test_every_test_runs_in_full_in_one_of_two_parts() -> None:
    short, rest = (set[Any](part_of(ITEMS, part)) for part in (SHORT, REST))
    assert short | rest == set(part_of(ITEMS, None)) == set(ITEMS)
    assert not any(item.long for item in short)
    assert [item.obj for item in short & rest] == [drawn_often]


@pytest.mark.parametrize(("test", "few"), [(drawn_often, 10), (drawn_twice, None)])
def test_a_short_run_draws_a_quarter_but_at_least_two(test: Any, few: int | None) -> None:
    chosen = few_examples(Item(test, long=False))  # type: ignore[arg-type]
    assert (chosen and chosen.max_examples) == few
