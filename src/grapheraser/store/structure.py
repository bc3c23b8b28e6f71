"""What must hold of a register and a partition that were read; see `graph.structure` for graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grapheraser.errors import CorruptRunError
from grapheraser.graph.pages import Pages
from grapheraser.graph.register import RegisterPage
from grapheraser.graph.roles import SHARDED_ROLES
from grapheraser.receipts.register import KEY_SIZE


def check_register(key: bytes, pages: Sequence[RegisterPage]) -> None:
    """Raise an error unless these are the pages of a register, in their order."""
    digits = pages[0].digits if pages else 0
    if len(key) != KEY_SIZE or len(pages) != 16**digits:
        raise CorruptRunError("the register has other pages than it should.")
    for number, page in enumerate(pages):
        slots = page.entries["slot"].astype(np.uint64)
        ordered = bool((slots[1:] > slots[:-1]).all())
        if digits and len(slots):
            ends = slots[[0, -1]] >> np.uint64(64 - 4 * digits)
            ordered = ordered and bool((ends == number).all())
        if page.digits != digits or not ordered:
            raise CorruptRunError("the slots of the register are not ascending.")


def check_coverage(graph: Pages, partition: Pages, context: str) -> None:
    """Raise an error unless the partition holds the nodes that a context puts into shards."""
    ids, _, role = graph.nodes()
    if not np.array_equal(ids[np.isin(role, SHARDED_ROLES[context])], partition.nodes()[0]):
        raise CorruptRunError("the nodes of the partition are not those of the graph's shards.")
