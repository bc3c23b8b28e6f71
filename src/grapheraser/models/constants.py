"""Numbers that PyG's layers and all kernels of the package share."""

from __future__ import annotations

NO_ACTIVATION, RELU, ELU = range(3)
ACTIVATION_CODES = {"none": NO_ACTIVATION, "relu": RELU, "elu": ELU}

# The slope of gat's leaky ReLU below zero.
LEAK = 0.2
# Of batch norm: how fast running statistics follow, and what is added to a variance.
NORM_MOMENTUM, NORM_EPS = 0.1, 1e-5
