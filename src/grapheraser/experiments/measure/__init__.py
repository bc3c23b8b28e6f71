"""What a cell measures: one module per kind. Importing this package registers them all."""

from grapheraser.experiments.measure import (
    attack,
    f1,
    facts,
    insertion,
    links,
    partition,
    requests,
    shard_map,
)

__all__ = ["attack", "f1", "facts", "insertion", "links", "partition", "requests", "shard_map"]
