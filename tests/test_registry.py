from __future__ import annotations

import pytest

from grapheraser.errors import ParameterError
from grapheraser.registry import Registry


def test_a_name_gives_its_entry_in_the_order_of_registration() -> None:
    registry: Registry[int] = Registry("number")
    assert registry.add("two", 2) == 2
    registry.add("one", 1)
    assert registry.get("one") == 1
    assert list(registry) == ["two", "one"]
    assert "one" in registry
    assert "three" not in registry


def test_an_unknown_name_is_answered_with_the_choices() -> None:
    registry: Registry[int] = Registry("number")
    registry.add("one", 1)
    registry.add("two", 2)
    with pytest.raises(ParameterError, match=r"unknown number 'three'\. Choose from: one, two\."):
        registry.get("three")


def test_a_name_is_taken_once() -> None:
    registry: Registry[int] = Registry("number")
    registry.add("one", 1)
    with pytest.raises(ParameterError, match="registered already"):
        registry.add("one", 2)
    assert registry.get("one") == 1
