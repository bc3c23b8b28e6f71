"""Recommenders of trained factors: BPR-MF, LightGCN and RecEraser, on a GPU where there is one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled

WIDTH = 64
_START, _BATCH, _RATE = 0.1, 2048, 1e-3
# How often an item is drawn again that a user turns out to have.
_TRIES = 8
# Epochs in which maps and attention over the factors of shards are trained.
_ATTENDED = 20
Options = Mapping[str, float]
Tensor: TypeAlias = Any


def has_gpu() -> bool:
    """Say whether torch is there and finds a GPU."""
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def device() -> str:
    """Return where factors are trained."""
    return "cuda" if has_gpu() else "cpu"


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of users and items; scores are their products.

    Attributes:
        users: ``[users, WIDTH]``.
        items: ``[items, WIDTH]``.
        epochs: that they were trained for.
        forget_seconds: what forgetting a user takes; None: as much as fitting.
    """

    users: Tensor
    items: Tensor
    epochs: int
    forget_seconds: float | None = None

    def __call__(self, chosen: NDArray[np.int64]) -> NDArray[np.floating]:
        found: NDArray[np.floating] = self._scores(chosen).cpu().numpy()
        return found

    def _scores(self, chosen: NDArray[np.int64]) -> Tensor:
        import torch

        return self.users[torch.as_tensor(chosen, device=self.users.device)] @ self.items.T

    def best(self, train: sp.csr_array, chosen: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """Return the best k items of users that they don't have ``[len(chosen), k]``."""
        import torch

        scores = self._scores(chosen)
        seen = torch.tensor(
            np.stack(train[chosen].nonzero()), dtype=torch.int64, device=scores.device
        )
        scores[seen[0], seen[1]] = -torch.inf
        found: NDArray[np.int64] = scores.topk(k, dim=1).indices.cpu().numpy()
        return found


# Told how many epochs are over, and what they led to.
Look: TypeAlias = Callable[[Factors], None]


class Known(NamedTuple):
    """Interactions to draw from.

    Attributes:
        indptr: where the items of each user begin ``[users + 1]``.
        indices: items, by user.
        keys: sorted numbers of all pairs: user * items + item.
        active: users who have any.
        items: how many there are.
    """

    indptr: Tensor
    indices: Tensor
    keys: Tensor
    active: Tensor
    items: int

    @classmethod
    def of(cls, train: sp.csr_array) -> Known:
        """Take them from a matrix."""
        import torch

        rows, columns = train.nonzero()
        pairs = np.sort(rows.astype(np.int64) * train.shape[1] + columns)
        degrees = np.bincount(rows, minlength=train.shape[0])
        parts = [np.append(0, np.cumsum(degrees)), pairs % train.shape[1], pairs]
        first, items, keys = (torch.tensor(part, device=device()) for part in parts)
        active = torch.tensor(np.flatnonzero(degrees), device=device())
        return cls(first, items, keys, active, train.shape[1])

    def triples(self, count: int, draw: Any) -> Tensor:
        """Draw users alike, then one of their items, and an item that they don't have."""
        import torch

        parts = {"generator": draw, "device": self.keys.device}
        users = self.active[torch.randint(len(self.active), (count,), **parts)]
        first, degrees = self.indptr[users], self.indptr[users + 1] - self.indptr[users]
        places = torch.rand(count, dtype=torch.float64, **parts) * degrees
        others = torch.randint(self.items, (count,), **parts)
        for _ in range(_TRIES):
            key = users * self.items + others
            at = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
            again = torch.randint(self.items, (count,), **parts)
            others = torch.where(self.keys[at] == key, again, others)
        return torch.stack([users, self.indices[first + places.long()], others])


class Layers:
    """The mean of so many layers of factors of users and items, as LightGCN takes it.

    It is symmetric, so gradients go back the same way. On a GPU kernels of our own read no more
    than they have to: the last layer is made at the rows of a batch alone.
    """

    def __init__(self, train: sp.csr_array, count: int, kernels: Any = None) -> None:
        import torch

        parts: Any = [[None, train], [train.T, None]]
        both = sp.csr_array(sp.block_array(parts))
        degrees = np.diff(both.indptr)
        scale = 1.0 / np.sqrt(np.maximum(degrees, 1.0))
        both = sp.csr_array(sp.diags_array(scale) @ both @ sp.diags_array(scale))
        self.count, self.kernels = count, kernels
        parts = both.indptr.astype(np.int32), both.indices.astype(np.int32), both.data
        first, ends, values = (torch.tensor(part, device=device()) for part in parts)
        self.parts = first, ends, values.float()
        # The longest rows first, so that none is begun when all others are over.
        self.rows = torch.tensor(np.argsort(-degrees, kind="stable"), device=device())
        with warnings.catch_warnings():  # such tensors are in beta, says torch
            warnings.simplefilter("ignore")
            self.graph = torch.sparse_csr_tensor(first, ends, self.parts[2], both.shape)

    def _step(self, base: Tensor, found: Tensor) -> Tensor:
        if self.kernels is None:
            return base + self.graph @ found
        out = base.new_empty(base.shape)
        self.kernels.gather(self.parts, self.rows, base, found, out, compact=False)
        return out

    def everywhere(self, start: Tensor) -> Tensor:
        """Return the mean at all rows."""
        found = start
        for _ in range(self.count):
            found = self._step(start, found)
        return found / (self.count + 1)

    def at(self, start: Tensor, rows: Tensor) -> Tensor:
        """Return the mean at some rows."""
        if not self.count or self.kernels is None:
            return self.everywhere(start)[rows]
        found = start
        for _ in range(self.count - 1):
            found = self._step(start, found)
        out = start.new_empty((len(rows), start.shape[1]))
        self.kernels.gather(self.parts, rows, start, found, out, compact=True)
        return out / (self.count + 1)

    def back(self, start: Tensor, rows: Tensor, parts: Tensor) -> Tensor:
        """Return the gradient by ``start`` from gradients by the mean at some rows."""
        import torch

        parts = parts / (self.count + 1)
        base = torch.zeros_like(start).index_add_(0, rows, parts)
        found = base
        for layer in range(self.count):
            if layer or self.kernels is None:
                found = self._step(base, found)
            else:
                found = base.clone()
                self.kernels.scatter(self.parts, rows, parts, found)
        return found


def trained(
    train: sp.csr_array, layers: int, options: Options, look: Look | None = None
) -> Factors:
    """Train factors by Adam and the BPR loss, as LightGCN's authors do.

    Options are ``epochs``, ``decay``, ``seed``, and ``seconds`` after which no epoch begins. On a
    GPU an epoch is recorded once and played again.
    """
    import torch

    users, items = train.shape
    draw = torch.Generator(device()).manual_seed(int(options.get("seed", 0)))
    known, spread = Known.of(train), Layers(train, layers, _kernels())
    start = torch.empty(users + items, WIDTH, device=device()).normal_(0, _START, generator=draw)
    optimizer = torch.optim.Adam([start], _RATE, fused=True, capturable=has_gpu())
    offset = torch.tensor([[0], [users], [users]], device=device())
    drawn: Tensor = torch.empty(3, train.nnz, dtype=torch.int64, device=device())

    def steps() -> None:
        for ends in drawn.split(_BATCH, dim=1):
            start.grad = bpr_gradient(start, spread, ends, options["decay"])
            optimizer.step()

    began, epoch, play = time.monotonic(), 0, steps
    while epoch < options["epochs"] and time.monotonic() - began < options.get("seconds", np.inf):
        drawn.copy_(known.triples(train.nnz, draw) + offset)
        play()
        epoch += 1
        if has_gpu():
            if epoch == 1:
                play = _recorded(steps)
            torch.cuda.synchronize()
        if look is not None:
            look(_factors(spread, start, users, epoch))
    return _factors(spread, start, users, epoch)


def _factors(spread: Layers, start: Tensor, users: int, epoch: int) -> Factors:
    final = spread.everywhere(start)
    return Factors(final[:users], final[users:], epoch)


def _kernels() -> Any:
    """Return kernels for a GPU; None where there is none."""
    if not has_gpu():
        return None
    from grapheraser_lab.rivals import layers

    return layers


def _recorded(steps: Callable[[], None]) -> Callable[[], None]:
    """Record what is to be done on the GPU, without doing it; return what does it."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        steps()
    again: Callable[[], None] = graph.replay
    return again


def bpr_gradient(start: Tensor, spread: Layers, ends: Tensor, decay: float) -> Tensor:
    """Return the gradient of the BPR loss of triples ``[3, n]`` of rows, with its penalty.

    The loss is the mean of ``softplus(-u (i - j))`` of spread factors, plus half of the decay times
    the mean of the squares of the factors themselves.
    """
    import torch

    count, ends = ends.shape[1], ends.reshape(-1)
    user, item, other = spread.at(start, ends).split(count)
    pull = torch.sigmoid(-(user * (item - other)).sum(dim=1, keepdim=True)) / -count
    parts = torch.cat([pull * (item - other), pull * user, -pull * user])
    gradient: Tensor = spread.back(start, ends, parts)
    return gradient.index_add_(0, ends, start[ends], alpha=decay / count)


def bpr_mf(train: sp.csr_array, options: Options, look: Look | None = None) -> Factors:
    """Score by matrix factors trained to rank."""
    return trained(train, 0, options, look)


def lightgcn(train: sp.csr_array, options: Options, look: Look | None = None) -> Factors:
    """Score by LightGCN with three layers."""
    return trained(train, 3, options, look)


def receraser(train: sp.csr_array, options: Options, look: Look | None = None) -> Factors:
    """Score by RecEraser (Chen et al., WWW 2022): BPR-MF in shards, pooled by attention.

    Users and items are embedded by BPR-MF first; their interactions are divided into balanced
    shards by how near both ends are to a shard's (InBP). Each shard trains factors of its own. Then
    these are fixed, brought into one space by a linear map for each shard, and summed by attention
    weights of each user and each item, all trained with the BPR loss.
    """
    del look
    shards = int(options["shards"])
    pairs = np.stack(train.nonzero(), axis=1)
    first = bpr_mf(train, options)
    embedded = first.users.cpu().numpy(), first.items.cpu().numpy()
    of = balanced(pairs, embedded, shards, int(options.get("seed", 0)))
    began, found = time.monotonic(), []
    for shard in range(shards):
        own = pairs[of == shard].T
        found.append(bpr_mf(sp.csr_array((np.ones(own.shape[1]), own), train.shape), options))
    spent, began = (time.monotonic() - began) / shards, time.monotonic()
    users, items = _attended(train, found, int(options.get("seed", 0)))
    spent += time.monotonic() - began
    return Factors(users, items, int(options["epochs"]), spent)


def balanced(
    pairs: NDArray[np.integer],
    ends: tuple[NDArray[np.floating], ...],
    shards: int,
    seed: int,
    rounds: int = 10,
) -> NDArray[np.int64]:
    """Divide interactions among shards of equal size, the nearest first, by rounds of means."""
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:shards]
    anchors = [end[pairs[chosen, side]] for side, end in enumerate(ends)]
    of = np.zeros(len(pairs), dtype=np.int64)
    for _ in range(rounds):
        far = np.ones((len(pairs), shards), dtype=np.float32)
        for side, end in enumerate(ends):
            squares = (end**2).sum(axis=1)[:, None] + (anchors[side] ** 2).sum(axis=1)
            apart = np.sqrt(np.maximum(squares - 2 * end @ anchors[side].T, 0))
            far *= apart[pairs[:, side]]
        order = np.argsort(far, axis=None, kind="stable")
        of = _filled(order, len(pairs), shards, -(-len(pairs) // shards))
        anchors = [
            np.stack([end[pairs[of == shard, side]].mean(axis=0) for shard in range(shards)])
            for side, end in enumerate(ends)
        ]
    return of


@compiled
def _filled(order, count, shards, room):  # type: ignore[no-untyped-def]
    """Give each pair to the first shard in an order of pairs and shards that has room."""
    of, left = np.full(count, -1, dtype=np.int64), np.full(shards, room)
    for place in order:
        pair, shard = place // shards, place % shards
        if left[shard] > 0 and of[pair] < 0:
            of[pair] = shard
            left[shard] -= 1
    return of


def _attended(train: sp.csr_array, found: list[Factors], seed: int) -> list[Tensor]:
    """Train the maps and attention weights over fixed factors of shards; return what is pooled."""
    import torch

    known, draw = Known.of(train), torch.Generator(device()).manual_seed(seed)
    fixed = [torch.stack([getattr(f, side) for f in found], 1) for side in ("users", "items")]
    maps = torch.eye(WIDTH, device=device()).repeat(len(found), 1, 1).requires_grad_()

    def drawn(*shape: int) -> list[Tensor]:
        made = [torch.empty(*shape, device=device()) for _ in fixed]
        return [part.normal_(0, _START, generator=draw).requires_grad_() for part in made]

    asks, inner = drawn(WIDTH), drawn(WIDTH, WIDTH)

    def pooled(side: int, chosen: Tensor) -> Tensor:
        rows = torch.einsum("nsd,sde->nse", fixed[side][chosen], maps)
        weights = torch.softmax(torch.relu(rows @ inner[side]) @ asks[side], dim=1)
        return (weights[:, :, None] * rows).sum(dim=1)

    optimizer = torch.optim.Adam([maps, *asks, *inner], _RATE)
    for _ in range(_ATTENDED):
        for u, i, j in known.triples(train.nnz, draw).split(_BATCH, dim=1):
            ahead = (pooled(0, u) * (pooled(1, i) - pooled(1, j))).sum(dim=1)
            optimizer.zero_grad()
            loss: Any = torch.nn.functional.softplus(-ahead).mean()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        rows: list[Any] = [torch.arange(len(side), device=device()) for side in fixed]
        return [
            torch.cat([pooled(side, part) for part in own.split(4096)])
            for side, own in enumerate(rows)
        ]
