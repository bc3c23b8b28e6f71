"""`compiled`: numba's ``njit`` with a cache on disk that never runs stale code.

numba keys its own cache to the file of the function alone, although the helpers that the function
calls, their constants and the types of its arguments are compiled into it. This cache keys a
function to the sources of its module and of all modules of the package that it imports, directly
or not. It reads and writes the first of these folders that it can:

1. ``NUMBA_CACHE_DIR``, where it is set;
2. ``__pycache__/kernels`` in the package;
3. ``grapheraser/kernels`` in the user's cache folder (``XDG_CACHE_HOME``, else ``~/.cache``);
4. a folder of the user's own among the temporary files.

Where it can write nowhere, functions are compiled in every process. Processes that need the same
kernel at the same time compile it once: the first one claims it, the others wait for the result.

This module and `kernels.linking` use numba beyond its public interface: a dispatcher's ``_cache``
and ``_compiler._compile_core``, `FunctionCache` and its ``_impl``, `compile_extra`, `Flags` and the
steps of a code library. Any release may change them, so `pyproject.toml` bounds numba's version by
the last one that was tested; raise the bound together with a run of ``tests/kernels``.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, overload

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from grapheraser.kernels.linking import link_callees

_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(
    rf"^\s*from ({_PACKAGE.name}[\w.]*) import (\([^)]*\)|.*)$", flags=re.MULTILINE
)


@dataclass(frozen=True)
class Compilation:
    """A kernel that this process has compiled, or that another one has compiled for it."""

    kernel: str  # the function, by its module in the package and its name
    seconds: float  # the time that it took, or that this process waited for it
    folder: Path | None  # where the result is kept; None where nothing could be written


# Seconds after which a kernel that another process has begun to compile is compiled here as well.
_MAX_WAIT = 60.0

_done: list[Compilation] = []
_watching: list[Callable[[str], None]] = []


def compilations() -> list[Compilation]:
    """All that this process has compiled so far, in order; not what it read from the cache."""
    return list(_done)


@contextlib.contextmanager
def watched(begin: Callable[[str], None]) -> Iterator[None]:
    """Call ``begin`` with the name of each kernel that has to be compiled inside."""
    _watching.append(begin)
    try:
        yield
    finally:
        _watching.remove(begin)


def is_kept(kernel: Any) -> bool:
    """Return whether code of a kernel's present sources is on disk, for arguments of any type."""
    own = getattr(kernel, "_cache", None)
    return isinstance(own, KernelCache) and own.is_kept()


def can_keep() -> bool:
    """Return whether there is a folder that takes compiled code."""
    return any(os.access(folder, os.W_OK) for folder in cache_folders(create=True))


@overload
def compiled(function: Callable[..., Any], /) -> Any: ...
@overload
def compiled(*, inline: bool = ...) -> Callable[[Callable[..., Any]], Any]: ...


def compiled(function: Callable[..., Any] | None = None, /, *, inline: bool = False) -> Any:
    """Compile a function when it is called: ``@compiled`` or ``@compiled(inline=True)``.

    It runs without the interpreter's lock, and divides as numpy does: by zero without an error.
    ``inline`` makes the function part of every function that calls it, without a call: worth it for
    short ones that take a `Table`, whose fields would be handed over one by one.
    """
    if function is None:
        return partial(compiled, inline=inline)
    options = {"error_model": "numpy", "forceinline": inline}
    njit: Any = partial(numba.njit, no_cfunc_wrapper=True, **options)
    kernel = njit(nogil=True)(function)
    if hasattr(kernel, "py_func"):  # NUMBA_DISABLE_JIT leaves the function as it is
        link_callees(kernel, callee=njit(no_cpython_wrapper=True)(function))
        if source_digest(function.__module__):  # without sources nothing would tell stale code
            kernel._cache = KernelCache(function)
    return kernel


class KernelCache(FunctionCache):
    """The compiled code of one function: a file per signature, target and state of the sources."""

    def __init__(self, function: Callable[..., Any]) -> None:
        # Not numba's own __init__, which fails where it finds no folder to write to.
        self._name, self._py_func = repr(function), function
        self._cache_path = str(_candidates()[0])
        self._impl = object.__new__(self._impl_class)
        self._prefix = f"{function.__module__}.{function.__qualname__}."
        versions = f"{sys.implementation.cache_tag} {numba.__version__}"
        self._state = _digest(f"{versions} {source_digest(function.__module__)}")
        self._kernel = self._prefix.removeprefix(f"{_PACKAGE.name}.").rstrip(".")
        self._begun = 0.0
        self._claim: Path | None = None
        self.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature; None where it has to be compiled next."""
        # All that loaded code needs. Refreshing the whole context takes longer than to predict, and
        # numba does it itself before it compiles.
        rtsys.initialize(target_context)
        name = self._file_name(sig, target_context.codegen())
        code = self._read(name, target_context)
        if code is not None:
            return code
        self._begun, self._claim = time.perf_counter(), None
        for begin in _watching:
            begin(self._kernel)
        folder = next(cache_folders(create=True), None)
        if folder is not None:
            claim = folder / f"{name}.claim"
            while not (mine := _claimed(claim)) and code is None:
                time.sleep(0.01)
                code = self._read(name, target_context)
            if mine:
                self._claim = claim
                code = self._read(name, target_context)  # finished just before it was claimed
        if code is not None:
            self._record(folder)
        return code

    def _read(self, name: str, target_context: Any) -> Any:
        for folder in cache_folders():
            try:
                content = (folder / name).read_bytes()
                return self._impl.rebuild(target_context, pickle.loads(content))
            except Exception:  # not there, not readable, or damaged: compiling always works
                continue
        return None

    def _record(self, folder: Path | None) -> None:
        """Note that a kernel was compiled, or waited for, and give the claim back."""
        if self._claim is not None:
            with contextlib.suppress(OSError):
                self._claim.unlink()
        _done.append(Compilation(self._kernel, time.perf_counter() - self._begun, folder))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write compiled code to the first folder that takes it, if any does."""
        self._record(None if data.library.has_dynamic_globals else self._save(sig, data))

    def _save(self, sig: Any, data: Any) -> Path | None:
        name, content = self._file_name(sig, data.codegen), dumps(self._impl.reduce(data))
        for folder in cache_folders(create=True):
            part = folder / f"{name}.{uuid.uuid4().hex}.part"
            try:
                part.write_bytes(content)
                part.replace(folder / name)
            except OSError:
                with contextlib.suppress(OSError):
                    part.unlink()
                continue
            self._remove(folder, keep=self._state)  # what other states of the sources left
            return folder
        return None

    def is_kept(self) -> bool:
        """Return whether there is compiled code of the present sources."""
        pattern = f"{self._prefix}{self._state}.*.nbc"
        return any(True for folder in cache_folders() for _ in folder.glob(pattern))

    def flush(self) -> None:
        """Remove all compiled code of the function."""
        for folder in cache_folders():
            self._remove(folder, keep="")

    def _file_name(self, sig: Any, codegen: Any) -> str:
        return f"{self._prefix}{self._state}.{_digest(repr(self._index_key(sig, codegen)))}.nbc"

    def _remove(self, folder: Path, keep: str) -> None:
        for file in folder.glob(f"{self._prefix}*.nbc"):
            if not keep or not file.name.startswith(self._prefix + keep):
                with contextlib.suppress(OSError):
                    file.unlink()


def _claimed(claim: Path) -> bool:
    """Claim a kernel for this process to compile; False while another process has it.

    A claim is a file with the process's id. One whose process is gone, or that is too old, counts
    for nothing; nor does it where none can be written. Then two processes compile the same, which
    costs time and no more.
    """
    try:
        with claim.open("x") as file:
            file.write(str(os.getpid()))
        return True
    except FileExistsError:
        pass
    except OSError:
        return True
    try:
        owner, age = claim.read_text(), time.time() - claim.stat().st_mtime
        if age < _MAX_WAIT and owner != str(os.getpid()):
            if owner and os.name == "posix":
                os.kill(int(owner), 0)  # signal 0 only asks whether the process is there
            return False
        claim.write_text(str(os.getpid()))
    except (FileNotFoundError, PermissionError):
        return False  # just done, or somebody else's process
    except (OSError, ValueError):
        claim.write_text(str(os.getpid()))  # its process is gone
    return True


def cache_folders(*, create: bool = False) -> Iterator[Path]:
    """The folders of compiled code in the order in which they are tried, those that exist."""
    for folder in _candidates():
        with contextlib.suppress(OSError):
            if create:
                # What is warmed up in a package may be for others to read.
                mode = 0o700 if folder == _temporary() else 0o777
                folder.mkdir(mode=mode, parents=True, exist_ok=True)
            if folder.is_dir() and not (folder == _temporary() and _is_foreign(folder)):
                yield folder


@cache
def _candidates() -> list[Path]:
    # Copies of the package that share a folder have parts of their own in it.
    own = f"{_PACKAGE.name}-{_digest(str(_PACKAGE))}"
    found = [_PACKAGE / "__pycache__" / "kernels"]
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        found.insert(0, Path(chosen) / own)
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(user):
        found.append(Path(user) / "grapheraser" / "kernels" / own)
    if temporary := _temporary():
        found.append(temporary)
    return found


@cache
def _temporary() -> Path | None:
    try:
        user = os.getuid() if hasattr(os, "getuid") else "user"
        return Path(tempfile.gettempdir()) / f"grapheraser-{user}-{_digest(str(_PACKAGE))}"
    except OSError:
        return None


def _is_foreign(folder: Path) -> bool:
    """Return whether others could have written there: code that is loaded is code that is run."""
    if not hasattr(os, "getuid"):
        return False
    found = folder.lstat()
    return found.st_uid != os.getuid() or bool(found.st_mode & 0o077)


@cache
def source_digest(module: str) -> str:
    """A digest of a module's source, and all it imports here; empty if it can't be read."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in found and (imports := _source(name)[1]) is not None:
            found.add(name)
            waiting += imports
    text = "".join(f"{name} {_source(name)[0]} " for name in sorted(found))
    return _digest(text) if module in found else ""


@cache
def _source(module: str) -> tuple[str, list[str] | None]:
    """The digest of a module's source, and what may be modules among all that it imports."""
    base = _PACKAGE.parent.joinpath(*module.split("."))
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        with contextlib.suppress(OSError):
            text = file.read_text(encoding="utf-8")
            imports = []
            for home, names in _IMPORT.findall(text):
                imports += [home, *(f"{home}.{name}" for name in re.findall(r"\w+", names))]
            return _digest(text), imports
    return "", None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
