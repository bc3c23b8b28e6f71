"""Which rows moved, and when: what an index needs to know to follow an embedding.

Kept beside the state and no part of it: a fresh fit has none. For every node that is left it holds
the last version that moved its row, and nothing of those that went. Whoever reads it learns roughly
where something was forgotten, as from the rows themselves before and after; `acknowledge` lets go
of what every index has taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.form import Form, Tensors
from grapheraser.errors import CorruptRunError, ParameterError
from grapheraser.graph import Graph
from grapheraser.store.digests import BESIDE

Ids = NDArray[np.int64]
_NONE: Ids = np.zeros(0, dtype=np.int64)
_NODES, _VERSIONS, _ENDS = (f"{BESIDE}moved {what}" for what in ("nodes", "versions", "ends"))


@dataclass(frozen=True, eq=False)
class Moved:
    """Rows that moved.

    Attributes:
        nodes: sorted ids.
        versions: int64, the last version that moved each.
        floor: changes up to this version are not told any more.
        version: of the state: how many changes led to it.
        last: sorted ids of the rows that the last change moved; empty after loading.
    """

    nodes: Ids
    versions: NDArray[np.int64]
    floor: int
    version: int
    last: Ids

    @classmethod
    def none(cls) -> Moved:
        """Return what there is to tell of a fit."""
        return cls(_NONE, _NONE, 0, 0, _NONE)

    def then(self, moved: Ids, gone: Ids) -> Moved:
        """Return what there is to tell after a change; who is gone is not remembered."""
        version = self.version + 1
        left = ~np.isin(self.nodes, np.append(moved, gone))
        nodes = np.append(self.nodes[left], moved)
        versions = np.append(self.versions[left], np.full(len(moved), version))
        order = np.argsort(nodes, kind="stable")
        return Moved(nodes[order], versions[order], self.floor, version, moved)

    def since(self, version: int) -> Ids:
        """Return sorted ids of the rows that later changes moved."""
        if not self.floor <= version <= self.version:
            known = f"an int in [{self.floor}, {self.version}]"
            raise ParameterError.of("since", "Embedder.changes", known, version)
        return self.nodes[self.versions > version]

    def acknowledged(self, version: int) -> Moved:
        """Return what is left to tell of changes after a version."""
        if not 0 <= version <= self.version:
            known = f"an int in [0, {self.version}]"
            raise ParameterError.of("version", "Embedder.acknowledge", known, version)
        left = self.versions > version
        floor = max(self.floor, version)
        return Moved(self.nodes[left], self.versions[left], floor, self.version, self.last)

    @property
    def tensors(self) -> Mapping[str, NDArray[Any]]:
        """Arrays that are saved."""
        ends = np.array([self.floor, self.version], dtype=np.int64)
        return {_NODES: self.nodes, _VERSIONS: self.versions, _ENDS: ends}

    @staticmethod
    def forms(tensors: Tensors) -> dict[str, Form]:
        """Return the forms of those arrays."""
        count = tensors[_NODES].size if _NODES in tensors else 0
        return {
            _NODES: Form(np.int64, (count,), 0),
            _VERSIONS: Form(np.int64, (count,), 1),
            _ENDS: Form(np.int64, (2,), 0),
        }

    @classmethod
    def restored(cls, tensors: Tensors) -> Moved:
        """Read saved arrays back."""
        nodes, versions, ends = (
            np.asarray(tensors[name], dtype=np.int64) for name in (_NODES, _VERSIONS, _ENDS)
        )
        floor, version = ends.tolist()
        return cls(nodes, versions, floor, version, _NONE)

    def check(self, graph: Graph) -> None:
        """Raise an error unless these are rows of a graph, in order."""
        ordered = bool((np.diff(self.nodes) > 0).all()) and self.floor <= self.version
        within = not len(self.versions) or self.versions.max() <= self.version
        if not (ordered and within and graph.contains(self.nodes).all()):
            raise CorruptRunError("its list of rows that moved is not one of its nodes.")
