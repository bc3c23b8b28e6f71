"""What bits may depend on: versions of libraries, and the type of the machine."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

VERSION = "0.1.0"  # as in pyproject.toml
# What the package reads from the environment.
VARIABLES = {
    "GRAPHERASER_API_KEY": "API key that `grapheraser requests` sends to the service.",
    "GRAPHERASER_DATA": "Folder of data sets; default `~/.cache/grapheraser/data`.",
    "GRAPHERASER_KEYS": "Folder of signing keys, or empty; default `~/.config/grapheraser/keys`.",
    "GRAPHERASER_KEY_PASSPHRASE": "Encrypts the private halves of signing keys.",
    "GRAPHERASER_URL": "Where the service listens, for `grapheraser requests`.",
    "NUMBA_CACHE_DIR": "Folder of compiled kernels; default beside the package if writable.",
    "RAY_ADDRESS": "The Ray cluster that executor `ray` connects to; default a local one.",
    "XDG_CONFIG_HOME": "Signing keys go below it unless `GRAPHERASER_KEYS` says where.",
    "XDG_CACHE_HOME": "Compiled kernels go below it where the package can't be written to.",
}
_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "numba")


@cache
def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def torch_processor(device: str) -> str | None:
    """What torch computes with on the CPU, e.g. ``AVX512``; its last bits depend on it.

    None on another device.
    """
    if device != "cpu":
        return None
    import torch

    return str(torch.backends.cpu.get_cpu_capability())


def versions(device: str = "cpu") -> dict[str, str]:
    """Versions of Python and of the packages that compute; the types of machine and GPU."""
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
        import torch

        gpu = torch.cuda.get_device_name(device) if torch.cuda.is_available() else "none"
        found |= {"triton": _installed("triton"), "gpu": gpu}
    return found
