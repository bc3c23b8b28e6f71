"""Progress: bars on stderr, for terminals only, never one inside another; or a function is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# Is told what is being done, how many steps of it are done, and of how many; 0 of 0: not counted.
Tell = Callable[[str, int, int], None]
_inside: ContextVar[bool] = ContextVar("inside", default=False)
_told: ContextVar[Tell | None] = ContextVar("told", default=None)


@contextmanager
def told(tell: Tell) -> Iterator[None]:
    """Tell a function of the steps inside, in the place of bars."""
    before = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(before)


def stage(description: str) -> None:
    """Say what is being done next, to whoever is told; no bar is shown."""
    if (tell := _told.get()) is not None:
        tell(description, 0, 0)


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of ``total`` steps; silent unless on a terminal."""
    if (tell := _told.get()) is not None:
        yield _counting(tell, description, total)
        return
    if total < 2 or not _is_free():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(elapsed_when_finished=True),
    )
    with _outermost(), _bar(*columns) as bar:
        task = bar.add_task(description, total=total)
        yield lambda: bar.advance(task)


def _counting(tell: Tell, description: str, total: int) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        tell(description, done, total)

    tell(description, 0, total)
    return step


@contextmanager
def counted(description: str) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with the name of each step as it begins, however many there are.

    The bar appears with the first step. Other bars stay hidden inside, with or without steps.
    """
    if not _is_free():
        with _outermost():
            yield lambda name: None
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:.0f}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[step]}", style="dim"),
    )
    with _outermost(), _bar(*columns, visible=False) as bar:
        task = bar.add_task(description, total=None, step="")

        def begin(name: str) -> None:
            bar.start()
            bar.update(task, advance=1, step=name)

        yield begin


@contextmanager
def hidden() -> Iterator[None]:
    """Show no bar."""
    with _outermost():
        yield


def _is_free() -> bool:
    return sys.stderr.isatty() and not _inside.get()


@contextmanager
def _outermost() -> Iterator[None]:
    before = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(before)


@contextmanager
def _bar(*columns: Any, visible: bool = True) -> Iterator[Any]:
    """A bar that goes away at the end; unless ``visible`` it waits to be started."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    if visible:
        bar.start()
    try:
        yield bar
    finally:
        bar.stop()
