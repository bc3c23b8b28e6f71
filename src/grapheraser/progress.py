"""Progress bars on stderr, for terminals only, and never one inside another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_inside: ContextVar[bool] = ContextVar("inside", default=False)


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of ``total`` steps; silent unless on a terminal."""
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
