"""The forward pass of shard models on a GPU, with the bits of the one on the processor.

Each sum runs in the same order with the same roundings, so where a posterior was computed can't be
told from it, and a large question may go to the GPU while a small one stays.
"""

from __future__ import annotations

from importlib.util import find_spec


def runs_here(device: str) -> bool:
    """Whether this machine has the GPU that is named, and the compiler for it."""
    if not device.startswith("cuda"):
        return False
    import torch

    return torch.cuda.is_available() and find_spec("triton") is not None
