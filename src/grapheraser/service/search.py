"""Find nodes by their id or name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph

_DIGITS = 19  # of the largest id


def found_nodes(graph: Graph, text: str, most: int) -> NDArray[np.int64]:
    """Ids of nodes that a text stands for, the closest first.

    Where nodes have names: the one of this name, then those that begin with the text, then those
    that hold it, whatever the case. Else the node of this id, then those whose ids begin with it.
    """
    wanted = text.strip()
    found = _by_name(graph, wanted, most) if graph.named else _by_id(graph.ids, wanted, most)
    return np.array(found, dtype=np.int64)


def _by_name(graph: Graph, text: str, most: int) -> list[int]:
    wanted = text.casefold()
    names = [str(name).casefold() for name in graph.names_of(graph.ids)]
    ids = graph.ids.tolist()
    exact = [ids[at] for at, name in enumerate(names) if name == wanted]
    begin = [ids[at] for at, name in enumerate(names) if name.startswith(wanted)]
    hold = [ids[at] for at, name in enumerate(names) if wanted in name]
    return list(dict.fromkeys(exact + begin + hold))[:most]


def _by_id(ids: NDArray[np.int64], text: str, most: int) -> list[int]:
    if not text.isdecimal() or len(text) > _DIGITS or (text[0] == "0" and text != "0"):
        return []
    found: list[int] = []
    first = int(text)
    for zeros in range(_DIGITS - len(text) + 1):  # 17, then 170 to 179, then 1700 to 1799
        low, high = first * 10**zeros, (first + 1) * 10**zeros
        if low > np.iinfo(np.int64).max or len(found) >= most or (first == 0 and zeros):
            break
        ends = [low, min(high - 1, np.iinfo(np.int64).max)]
        start, end = np.searchsorted(ids, ends[0]), np.searchsorted(ids, ends[1], side="right")
        found += ids[start : min(end, start + most)].tolist()
    return found[:most]
