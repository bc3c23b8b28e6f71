"""The first thing to do: one node to forget, where the service was started to be tried out."""

from __future__ import annotations

from dataclasses import dataclass

from grapheraser.service.api.parts import Parts


@dataclass(frozen=True)
class FirstStep:
    """A node that the overview offers to forget.

    Attributes:
        node: its id.
        is_there: whether it is in the graph still.
        neighbours: how many it has.
        shard: that it is in.
        shards: how many there are.
    """

    node: int | str
    is_there: bool
    neighbours: int = 0
    shard: int = 0
    shards: int = 0


def first_step(parts: Parts) -> FirstStep | None:
    """What is offered; None where nothing is."""
    node = parts.first_step
    if node is None:
        return None
    model = parts.served.now.model
    ids = model.graph_.ids_of([node])
    if not model.graph_.contains(ids)[0]:
        return FirstStep(node, is_there=False)
    return FirstStep(
        node,
        is_there=True,
        neighbours=len(model.graph_.neighbours(node)),
        shard=int(model.partition_.shard_of(ids)[0]),
        shards=len(model.shards_),
    )
