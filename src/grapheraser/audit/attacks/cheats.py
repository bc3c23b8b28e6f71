"""Providers who answer a request: one who is honest, and some who only pretend.

They are the positive controls of an audit: what finds nothing against them finds nothing at all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

from grapheraser.eraser import GraphEraser
from grapheraser.graph import Edges

Provider = Callable[[GraphEraser, Edges], GraphEraser]


def honest(eraser: GraphEraser, request: Edges) -> GraphEraser:
    """Forgets, exactly; the run itself is left as it is."""
    after = copy.copy(eraser)
    after.unlearn(request)
    return after


def idle(eraser: GraphEraser, request: Edges) -> GraphEraser:
    """Does nothing."""
    del request
    return copy.copy(eraser)


def hiding(eraser: GraphEraser, request: Edges) -> GraphEraser:
    """Takes the edges out of the graph that it answers on, and keeps all that it has learned."""
    after = copy.copy(eraser)
    now = after._now
    ensemble = replace(now.state.ensemble, graph=now.state.graph.without(request))
    after._fitted = replace(now, state=replace(now.state, ensemble=ensemble))
    return after


def halfway(eraser: GraphEraser, request: Edges) -> GraphEraser:
    """Forgets every other edge of the request."""
    return honest(eraser, Edges(request.pairs[::2]))


PROVIDERS: dict[str, Provider] = {
    "honest": honest,
    "does nothing": idle,
    "hides": hiding,
    "forgets half": halfway,
}
