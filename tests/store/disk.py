"""Stepping in at anything that a save does to the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from filelock import FileLock

from grapheraser.store import files


@contextmanager
def watched(act: Callable[[int], None]) -> Iterator[None]:
    """Call ``act`` with 0, 1, 2, ... before and after every change of the disk, but not its own."""
    numbers, acting = count(), False

    def step() -> None:
        nonlocal acting
        if not acting:
            acting = True
            try:
                act(next(numbers))
            finally:
                acting = False

    def around(
        function: Callable[..., Any], undo: Callable[[Any], None] = lambda _: None
    ) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            step()
            result = function(*arguments, **options)
            try:
                step()
            except BaseException:
                undo(result)
                raise
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "unlink", "mkdir"):
            patch.setattr(os, name, around(getattr(os, name)))
        patch.setattr(os, "fsync", around(lambda _: None))
        opened = around(open, lambda file: file.close())
        patch.setattr(files, "open", opened, raising=False)
        acquired = around(FileLock.acquire, lambda held: held.lock.release())
        patch.setattr(FileLock, "acquire", acquired)
        patch.setattr(files, "FLUSHERS", 1)  # one after the other, so that steps have an order
        yield


class Interrupt(KeyboardInterrupt):
    """Ours, not the one of whoever runs the tests."""


def interrupt(at: int) -> Callable[[int], None]:
    """Stop once; what the code does about it is carried out."""

    def act(number: int) -> None:
        if number == at:
            raise Interrupt

    return act


def power_cut(at: int) -> Callable[[int], None]:
    """Stop, and nothing more reaches the disk."""

    def act(number: int) -> None:
        if number >= at:
            raise Interrupt

    return act
