"""grapheraser demo --serve: the embedded graph behind the service, with its dashboard."""

from __future__ import annotations

import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from grapheraser.cli.output import print_json, say
from grapheraser.errors import ParameterError

if TYPE_CHECKING:
    from grapheraser.eraser import GraphEraser
    from grapheraser.graph import Graph

# What has to be the same for a run that is there to be served again.
_SAME = ("model", "partition", "num_shards", "aggregation", "seed")


def try_out(
    graph: Graph,
    eraser: GraphEraser,
    out: Path | None,
    *,
    port: int,
    is_opened: bool,
    as_json: bool,
) -> None:
    """Fit, or take the run that is there, and serve it on this machine until somebody stops it.

    Args:
        graph: to fit.
        eraser: not fitted yet.
        out: the folder for the run; None: one that is removed at the end.
        port: to listen on; 0: any that is free.
        is_opened: whether to open a browser.
        as_json: whether to print what to open as JSON.
    """
    from grapheraser.demo.scene import choose
    from grapheraser.service.api.access import Role
    from grapheraser.service.api.start import listening, started
    from grapheraser.service.running import Service
    from grapheraser.service.settings import Settings

    with _folder(out) as folder, _stopped() as wait:
        path = folder / "run"
        _fit(graph, eraser, path)
        settings = Settings(port=port, window=0.1, poll_seconds=0.1, name=graph.name)
        service = Service.opened(path, settings)
        with started(service, choose(graph, eraser.seed)) as app, listening(app, settings) as url:
            parts = app.state.parts
            _, key = parts.keys.create("demo", Role.OPERATOR)
            link = f"{url}/dashboard/sign-in#once={parts.once.issue(key)}"
            _announce(url, link, key, path, as_json=as_json)
            if is_opened:
                webbrowser.open(link)
            wait()
            say("stopping")


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="grapheraser-demo-") as made:
        yield Path(made)


@contextmanager
def _stopped() -> Iterator[Callable[[], None]]:
    """Gives a function that waits until somebody stops the process."""
    stopped = threading.Event()
    names = (signal.SIGINT, signal.SIGTERM)
    before = {name: signal.signal(name, lambda *_: stopped.set()) for name in names}

    def wait() -> None:
        while not stopped.wait(0.5):  # in steps, since some systems tell of no signal meanwhile
            pass

    try:
        yield wait
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _fit(graph: Graph, eraser: GraphEraser, path: Path) -> None:
    """Put a fitted run into a folder, unless it is there already."""
    from grapheraser.eraser import GraphEraser
    from grapheraser.errors import RunNotFoundError

    try:
        there = GraphEraser.load(path)
    except RunNotFoundError:
        say("fitting; the first time on a machine this compiles for a minute or two")
        eraser.fit(graph).save(path)
        return
    differs = [name for name in _SAME if there.get_params()[name] != eraser.get_params()[name]]
    if differs or there.graph_.name != graph.name:
        raise ParameterError(
            f"{path} holds another run ({', '.join(differs) or there.graph_.name}).",
            hint="choose another --out, or the options that it was fitted with.",
        )
    say(f"serving the run that is in {path}, with all that it forgot")


def _announce(url: str, link: str, key: str, path: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"url": url, "link": link, "key": key, "run": str(path)})
        return
    say(f"serving     {path}")
    say(f"open        {link}")
    say("            it signs you in once, within ten minutes")
    say(f"key         {key}")
    say("            for later, and for the API; it is shown this once")
    say("stop        Ctrl-C")
