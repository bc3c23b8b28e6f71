"""The worker in a process of its own, so that its Python code keeps no prediction waiting.

The server's process starts it, tells it that there is something to do, and starts it again when it
ends by itself. Before a version counts as published, the worker asks the server to serve it, and
waits until it does: what is completed is in the memory of neither.

    the server says   wake      somebody has submitted something
                      served    the version that was asked for is served; or why it is not
                      stop      finish the batch, and end
    the worker says   publish   serve the version in the folder, with these posteriors
                      trouble   what keeps it from working

When the server is gone the worker ends at once, as in any crash.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from grapheraser.errors import ParameterError, ServiceError
from grapheraser.service.served.serving import Published, Served
from grapheraser.service.settings import Settings
from grapheraser.service.worker.carrier import trouble_of
from grapheraser.service.worker.worker import Worker

# Opens a worker in its process, given the way to the server.
Opener: TypeAlias = "Callable[[Channel], Worker]"

_LOG = logging.getLogger(__name__)
_WAKE, _SERVED, _STOP = "wake", "served", "stop"
_PUBLISH, _TROUBLE = "publish", "trouble"
_NICENESS = 5  # predictions go before retraining
_WAKE_SECONDS = 0.05  # between two words that there is something to do
_MAX_REST_SECONDS = 30.0  # until a worker that ended is started again
_STEADY_SECONDS = 60.0  # after which failures are counted from one again
_MAIN = "from grapheraser.service.worker.process import main; main({})"


# -- in the server's process ----------------------------------------------------------------------


class WorkerProcess:
    """Starts a worker in a process of its own, and again whenever it ends by itself.

    ``opener`` is pickled, and opens the worker there; ``served`` serves what it publishes.

    Attributes:
        trouble: the reason why it can't work, for the operator; None: it can.
        restarts: how often it was started again.
    """

    def __init__(
        self, opener: Opener, served: Served, woken: threading.Event, settings: Settings
    ) -> None:
        self._opener, self._served, self._woken, self._settings = opener, served, woken, settings
        self.trouble: str | None = None
        self.restarts = 0
        self._given, self._is_up = b"", False
        self._stopping = threading.Event()
        self._sending = threading.Lock()
        self._connection: Connection | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the process; it is up a while later."""
        if not hasattr(socket, "AF_UNIX"):
            raise ParameterError(
                "a worker in a process of its own needs a POSIX system.",
                hint="set worker to 'thread'.",
            )
        try:
            self._given = pickle.dumps(self._opener)
        except Exception as error:  # pickle raises whatever a part of it does
            raise ParameterError(
                "parts of this run can't be handed to another process: "
                f"{type(error).__name__}: {error}.",
                hint="set worker to 'thread', or move them into a module.",
            ) from error
        self._stopping.clear()
        targets = {"worker-process": self._oversee, "worker-wake": self._forward}
        self._threads = [
            threading.Thread(target=target, name=f"grapheraser-{name}", daemon=True)
            for name, target in targets.items()
        ]
        atexit.register(self.stop)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the worker finish its batch, then end its process."""
        atexit.unregister(self.stop)
        self._stopping.set()
        self._woken.set()
        self._send(_STOP)
        for thread in self._threads:
            thread.join()

    @property
    def is_alive(self) -> bool:
        """Tell whether the process has opened the run, and works."""
        return self._is_up

    @property
    def pid(self) -> int | None:
        """The process id, where there is a process."""
        return None if self._process is None else self._process.pid

    def _oversee(self) -> None:
        """Start it, listen to it until it ends, and again."""
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                ended = self._listen(*self._spawn())
            except OSError as error:  # there are too many, or too large ones
                ended = f"not started: {error.strerror}"
            if self._stopping.is_set():
                return
            steady = time.monotonic() - began >= _STEADY_SECONDS
            failures = 1 if steady else failures + 1
            rest = min(self._settings.rest(failures).total_seconds(), _MAX_REST_SECONDS)
            self.trouble = f"the worker's process ended ({ended}), and is started again"
            _LOG.warning("%s in %g s", self.trouble, rest)
            self._stopping.wait(rest)
            self.restarts += not self._stopping.is_set()

    def _spawn(self) -> tuple[Connection, subprocess.Popen[bytes]]:
        """Start a process; return it with the connection to it."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            words = [sys.executable, "-c", _MAIN.format(theirs.fileno())]
            process = subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            connection = Connection(ours.detach())
        with suppress(OSError):  # it ended at once
            connection.send(sys.path)
            connection.send_bytes(self._given)
        with self._sending:
            self._connection, self._process = connection, process
        if self._stopping.is_set():  # while it was being started
            self._send(_STOP)
        return connection, process

    def _listen(self, connection: Connection, process: subprocess.Popen[bytes]) -> str:
        """Do what the worker asks for until it ends; return how it did."""
        try:
            while True:
                self._handle(*connection.recv())
        except (EOFError, OSError):
            pass
        finally:
            self._is_up = False
            with self._sending:
                self._connection = None
            connection.close()
        code = process.wait()
        return f"exit status {code}" if code >= 0 else signal.Signals(-code).name

    def _handle(self, what: str, value: Any) -> None:
        if what == _TROUBLE:
            self.trouble = value
            return
        try:
            self._served.refresh(value)
        except Exception as error:
            self._send(_SERVED, trouble_of(error))
        else:
            if not self._is_up:
                self._is_up, self.trouble = True, None
            self._send(_SERVED)

    def _forward(self) -> None:
        """Pass on that there is something to do."""
        while not self._stopping.is_set():
            self._woken.wait()
            self._woken.clear()
            self._send(_WAKE)
            self._stopping.wait(_WAKE_SECONDS)

    def _send(self, what: str, value: Any = None) -> None:
        with self._sending, suppress(OSError):
            if self._connection is not None:
                self._connection.send((what, value))


# -- in the worker's process ----------------------------------------------------------------------


class Channel:
    """The worker's way to the server."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._answers = connection, queue.SimpleQueue[str | None]()
        self._sending = threading.Lock()

    def publish(self, published: Published | None = None) -> None:
        """Have the server serve the version in the folder; returns when it does."""
        self._send(_PUBLISH, None if published is None else published.answers)
        if (trouble := self._answers.get()) is not None:
            raise ServiceError(f"the server can't serve the new version: {trouble}")

    def tell(self, trouble: str | None) -> None:
        """Report what keeps the worker from working; None: nothing."""
        self._send(_TROUBLE, trouble)

    def listen(self, worker: Worker) -> None:
        """Pass on what the server says, until it is gone."""
        with suppress(EOFError, OSError):
            while True:
                what, value = self._connection.recv()
                if what == _SERVED:
                    self._answers.put(value)
                elif what == _WAKE:
                    worker.wake()
                else:
                    worker.stop()
        os._exit(1)  # nobody is served any more: as in any crash, the next start goes on

    def _send(self, what: str, value: Any) -> None:
        with self._sending, suppress(OSError):  # `listen` notices it as well
            self._connection.send((what, value))


class Announced(Served):
    """The run in the worker's process: a version is published when the server serves it."""

    def __init__(
        self, path: Path, own: Mapping[str, Any] | None, answered: int, channel: Channel
    ) -> None:
        super().__init__(path, own)
        self._answered, self._channel = answered, channel

    def _take(self, published: Published) -> None:
        self._channel.publish(published)
        super()._take(published._replace(answers=None))  # nobody asks here


def main(descriptor: int) -> None:
    """Run the worker's process, given the descriptor of its connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for all: the server says stop
    os.set_inheritable(descriptor, False)  # the server has to notice when this process ends
    connection = Connection(descriptor)
    try:
        sys.path[:] = connection.recv()
        opener: Opener = pickle.loads(connection.recv_bytes())
    except (EOFError, OSError):
        return
    os.nice(_NICENESS)
    channel = Channel(connection)
    worker = opener(channel)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    threading.Thread(target=channel.listen, args=(worker,), daemon=True).start()
    channel.publish()  # the last process may have died before it could do so
    worker.run()
