"""Compiling kernels whole: what a kernel calls becomes part of it, and nothing else.

numba makes a program of its own of every function that a compiled one calls, be it ours or one of
numba's: optimised, translated to machine code, with an entry for Python. Then it links the function
into its callers and optimises it there again. Here only what Python calls becomes a program;
whatever is called from there is linked into it as it is, which halves the time of a first use. The
arithmetic is that of the source either way: without fast-math flags LLVM neither reorders nor fuses
floating-point operations, whatever it inlines or vectorises.

numba is used beyond its public interface here; see `kernels.compiled` for the bound on its version.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba.core import compiler, types
from numba.core.codegen import JITCodeLibrary


def link_callees(kernel: Any, callee: Any) -> None:
    """Let a dispatcher of numba compile its function whole.

    Python calls ``kernel``; ``callee`` is another dispatcher of the same function, for the kernels
    that call it.
    """
    kernel._compiler._compile_core = partial(_compile_kernel, kernel._compiler)
    callee._compiler._compile_core = partial(_compile, callee._compiler, LinkedLibrary)
    # Both are what numba asks of a dispatcher that it meets in the code of another function.
    kernel.get_call_template = partial(_template, callee)
    kernel.get_overload = callee.get_overload


def _template(callee: Any, args: Any, kws: Any) -> Any:
    """Tell numba how to call a function with arguments of these types.

    A constant is taken as any number of its type: numba would compile the function once for each.
    """
    plain = {name: types.unliteral(kind) for name, kind in dict(kws).items()}
    return callee.get_call_template([types.unliteral(kind) for kind in args], plain)


class _Flags(compiler.Flags):
    """Flags of a compilation that compare equal wherever numba's own callees would be the same.

    numba compiles these once for each state of the flags of their callers, though only inlining is
    handed down; and it compares flags, one by one, whenever it looks for one.
    """

    def __hash__(self) -> int:
        return hash(self.forceinline)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self.forceinline == other.forceinline


class LinkedLibrary(JITCodeLibrary):
    """The code of a function for its callers: they optimise and translate it with their own."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Null: nobody runs the function by itself."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Swallow a function's environment; `_compile_kernel` gives it to the callers."""
        return _Nobody()


class _Nobody:
    def set_env(self, env_name: str, env: Any) -> None:
        pass


def _compile_kernel(own: Any, args: Any, return_type: Any) -> Any:
    """Compile a function that Python calls."""
    result = _compile(own, JITCodeLibrary, args, return_type)
    for environment in result._find_referenced_environments():
        result.library.codegen.set_env(environment.env_name, environment)
    return result


def _compile(own: Any, kind: type[JITCodeLibrary], args: Any, return_type: Any) -> Any:
    """Compile a function into a library of that kind, instead of numba's ``_compile_core``."""
    context, flags = own.targetdescr.target_context, _Flags()
    own.targetdescr.options.parse_as_flags(flags, own.targetoptions)
    context.refresh()  # numba's own runtime is no part of a kernel
    library = kind(context.codegen(), own.py_func.__qualname__)
    library.enable_object_caching()
    with _linked(context.codegen()), _no_collection():
        result = compiler.compile_extra(
            own.targetdescr.typing_context,
            context,
            own.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=own.locals,
            library=library,
            pipeline_class=own.pipeline_class,
        )
    if result.typing_error is not None:
        raise result.typing_error
    return result


@contextmanager
def _linked(codegen: Any) -> Iterator[None]:
    """While inside, whatever numba compiles is for callers; it holds its compiler's lock."""
    before = codegen._library_class
    codegen._library_class = LinkedLibrary
    try:
        yield
    finally:
        codegen._library_class = before


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without looking for garbage, which takes a tenth of the time of a compilation."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
