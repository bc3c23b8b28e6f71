"""Influence-function unlearning: GIF.

After Wu et al., "GIF: A General Graph Unlearning Strategy via Influence Function", WWW 2023.
Weights w minimise a sum L(w; G) of losses over nodes. Taking data out of G changes the losses of
the nodes that go and of all whose neighbourhood changes. One step of Newton's method with the old
Hessian H answers the request:

    w' = w + H^-1 (grad of the changed losses in G - grad of those that are left in G')

The losses of all other nodes are the same in both graphs, so the difference of the gradients of
L(w; G) and L(w; G') is the same vector, and needs no bookkeeping of neighbourhoods. As in the
paper, the product with H^-1 is estimated by a series: h <- v + (1 - damp) h - H h / scale, whose
limit divided by the scale is (H + damp * scale)^-1 v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from grapheraser_lab.rivals.gcn import Inputs, Weights, objective

_FACTOR, _LARGEST = 3.0, 1e9  # of a scale


@dataclass(frozen=True)
class GifSettings:
    """Settings of the series. The paper's code has 100 iterations and scale 500 on Cora."""

    scale: float = 500.0
    damp: float = 0.0
    iterations: int = 100


def updated(weights: Weights, before: Inputs, after: Inputs, settings: GifSettings) -> Weights:
    """The weights after the request that made one training graph of the other."""
    weights = tuple(weight.detach().clone().requires_grad_() for weight in weights)
    old = torch.autograd.grad(objective(weights, before), weights, create_graph=True)
    new = torch.autograd.grad(objective(weights, after), weights)
    change = [(was - now).detach() for was, now in zip(old, new, strict=True)]
    step = solved(old, weights, change, settings)
    return tuple((w + s).detach() for w, s in zip(weights, step, strict=True))


def solved(
    gradient: Sequence[Tensor], weights: Weights, vector: Sequence[Tensor], settings: GifSettings
) -> list[Tensor]:
    """About (H + damp * scale)^-1 times the vector, where H differentiates the gradient.

    For a scale below half of H's largest eigenvalue the series diverges, and an eigenvalue follows
    from the data: a scale that was chosen on one split may fail on another. Whoever uses GIF would
    notice and take a larger one; so does this.
    """
    found, last = _series(gradient, weights, vector, settings)
    while not last <= _length(vector) and settings.scale < _LARGEST:
        settings = replace(settings, scale=_FACTOR * settings.scale)
        found, last = _series(gradient, weights, vector, settings)
    return found


def _series(
    gradient: Sequence[Tensor], weights: Weights, vector: Sequence[Tensor], settings: GifSettings
) -> tuple[list[Tensor], float]:
    """The sum of the series, and the length of its last term."""
    found, before = [part.clone() for part in vector], [torch.zeros_like(part) for part in vector]
    for _ in range(settings.iterations):
        products = torch.autograd.grad(gradient, weights, grad_outputs=found, retain_graph=True)
        before = found
        found = [
            v + (1 - settings.damp) * h - product / settings.scale
            for v, h, product in zip(vector, found, products, strict=True)
        ]
    last = _length([now - then for now, then in zip(found, before, strict=True)])
    return [part / settings.scale for part in found], last


def _length(parts: Sequence[Tensor]) -> float:
    return math.hypot(*(float(part.norm()) for part in parts))
