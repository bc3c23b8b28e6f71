"""The environment that bits may depend on: versions of libraries, and the type of the machine."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from grapheraser.errors import MissingExtraError

VERSION = "0.1.0"  # as in pyproject.toml
# What the package reads from the environment.
VARIABLES = {
    "GRAPHERASER_API_KEY": "API key that `grapheraser requests` sends to the service.",
    "GRAPHERASER_DATA": "Folder of data sets; default `~/.cache/grapheraser/data`.",
    "GRAPHERASER_KEYS": "Folder of signing keys, or empty; default `~/.config/grapheraser/keys`.",
    "GRAPHERASER_KEY_PASSPHRASE": "Encrypts the private halves of signing keys.",
    "GRAPHERASER_TOMBSTONES": "Folder of the logs of tombstones; default beside their keys.",
    "GRAPHERASER_URL": "Where the service listens, for `grapheraser requests`.",
    "NUMBA_CACHE_DIR": "Folder of compiled kernels; default beside the package if writable.",
    "RAY_ADDRESS": "The Ray cluster that executor `ray` connects to; default a local one.",
    "XDG_CONFIG_HOME": "Signing keys go below it unless `GRAPHERASER_KEYS` says where.",
    "XDG_CACHE_HOME": "Compiled kernels go below it where the package can't be written to.",
}
# Lines of Linux's description of a processor that tell its kind, on x86 and on ARM.
_KIND = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")
# What makes the libraries under torch take other code than the processor's kind would have them.
_STEERING = ("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_TORCH = ("torch", "torch_geometric")
_PACKAGES = (*_TORCH, "numpy", "scipy", "numba")


@cache
def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def has_torch() -> bool:
    """Tell whether torch and PyG are installed; nothing of the core asks."""
    return all(map(_is_there, _TORCH))


def needs_torch(purpose: str) -> None:
    """Raise an error with the command that installs torch and PyG, unless they are there."""
    for package in _TORCH:
        if not _is_there(package):
            raise MissingExtraError.of(package, "gnn", purpose)


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ImportError:
        return False


def torch_processor(device: str) -> str | None:
    """Return what torch computes with on the CPU, e.g. ``AuthenticAMD 25 17, AVX512``.

    Its last bits depend on it: torch goes by vector instructions, the libraries under it by the
    kind of processor and by variables of the environment. None on another device.
    """
    if device != "cpu":
        return None
    import torch

    steered = [f"{name}={os.environ[name]}" for name in _STEERING if os.environ.get(name)]
    vectors = str(torch.backends.cpu.get_cpu_capability())
    return ", ".join([_kind_of_processor(), vectors, *steered])


@cache
def _kind_of_processor() -> str:
    """Vendor, family and model; elsewhere than on Linux as the system calls it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read().partition("\n\n")[0]
    except OSError:
        first = ""
    lines = (line.partition(":") for line in first.splitlines())
    found = {name.strip(): value.strip() for name, _, value in lines}
    told = [found[name] for name in _KIND if name in found]
    return " ".join(told) or platform.processor() or platform.machine()


def versions(device: str = "cpu") -> dict[str, str]:
    """Versions of Python and of the packages that compute; the types of machine and GPU.

    A package that is not installed has the version ``none``.
    """
    return dict(_versions(device))


@cache
def _versions(device: str) -> dict[str, str]:
    found = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "grapheraser": VERSION,
        **{package: _installed(package) for package in _PACKAGES},
    }
    if device.startswith("cuda"):
        found |= {"triton": _installed("triton"), "gpu": _gpu(device)}
    return found


def _gpu(device: str) -> str:
    if not has_torch():
        return "none"
    import torch

    return torch.cuda.get_device_name(device) if torch.cuda.is_available() else "none"
