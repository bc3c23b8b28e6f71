"""All shard models of a run, in pages: a change costs what it touches, however many there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from grapheraser.canonical import PAGE
from grapheraser.engines.task import ShardWeights
from grapheraser.graph.pages.pages import Lineage


@dataclass(frozen=True, eq=False)
class ModelPage:
    """The models of neighbouring shards."""

    models: Mapping[int, ShardWeights]  # by shard, ascending; never changed

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """Ids of its shards, ascending."""
        return np.fromiter(self.models, dtype=np.int64, count=len(self.models))


@dataclass(frozen=True, eq=False, repr=False)
class ShardModels(Mapping[int, ShardWeights]):
    """Shard models by shard id, ascending; immutable. `changed` shares what does not change."""

    # By number, ascending; page ``p`` holds the shards from ``p * PAGE`` on.
    pages: Mapping[int, ModelPage]
    # Which models are others than in earlier versions with the same shards.
    lineage: Lineage = field(default_factory=Lineage)

    @classmethod
    def of(cls, models: Mapping[int, ShardWeights]) -> ShardModels:
        """Wrap a mapping, unless it already is a `ShardModels`."""
        if isinstance(models, ShardModels):
            return models
        pages: dict[int, dict[int, ShardWeights]] = {}
        for shard in sorted(models):
            pages.setdefault(shard // PAGE, {})[shard] = models[shard]
        return cls({number: ModelPage(page) for number, page in pages.items()})

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """Ids of all shards, ascending."""
        parts = [page.ids for page in self.pages.values()]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def changed(self, gone: Collection[int], new: Mapping[int, ShardWeights]) -> ShardModels:
        """Return a copy without the models of some shards, and with new ones for others."""
        pages = dict(self.pages)
        for number in {shard // PAGE for shard in chain(gone, new)}:
            page = dict(pages[number].models) if number in pages else {}
            for shard in gone:
                page.pop(shard, None)
            page |= {shard: model for shard, model in new.items() if shard // PAGE == number}
            pages.pop(number, None)
            if page:
                pages[number] = ModelPage(dict(sorted(page.items())))
        pages = dict(sorted(pages.items()))
        after = ShardModels(pages)
        if not np.array_equal(after.ids, self.ids):
            return after
        return ShardModels(pages, self.lineage.changed(new))

    def __getitem__(self, shard: int) -> ShardWeights:
        page = self.pages.get(shard // PAGE)
        if page is None:
            raise KeyError(shard)
        return page.models[shard]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(page.models for page in self.pages.values())

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"ShardModels({len(self)} shards)"
