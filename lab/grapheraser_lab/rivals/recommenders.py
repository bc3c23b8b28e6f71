"""Other recommenders, on the same matrices: each fitted afresh whenever somebody is forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Options = Mapping[str, float]
# From users to scores of all items ``[len(users), items]``.
Fitted: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.floating]]
# Items that a dense matrix of all pairs is made for.
_MAX_DENSE = 20_000
# Interactions that LightGCN is trained on without a GPU.
_MAX_TRAINED = 200_000


@dataclass(frozen=True)
class Rival:
    """A way to recommend.

    Attributes:
        fit: from a matrix and options to what scores.
        grid: of options to choose from.
        needs: the package that has to be installed.
        dense: whether it makes a dense matrix of all pairs of items.
        trained: whether it is trained by gradient descent, which takes a GPU on large data.
        exact: in what sense it is what a fit on the rest would be, after somebody was forgotten.
    """

    fit: Callable[[sp.csr_array, Options], Fitted]
    grid: Sequence[Options]
    needs: str = "numpy"
    dense: bool = False
    trained: bool = False
    exact: str = "by fitting again"

    def lacks(self, train: sp.csr_array) -> str | None:
        """Say why it can't be measured here; None where it can."""
        if find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        if self.dense and train.shape[1] > _MAX_DENSE and not _has_gpu():
            return f"a dense matrix of {train.shape[1]:,} items squared"
        if self.trained and train.nnz > _MAX_TRAINED and not _has_gpu():
            return "training takes a GPU"
        return None


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def popular(train: sp.csr_array, options: Options) -> Fitted:
    """Score items by how many users they have."""
    del options
    counts = np.asarray(train.sum(axis=0)).ravel()
    return lambda users: np.tile(counts, (len(users), 1))


def item_knn(train: sp.csr_array, options: Options) -> Fitted:
    """Score by the most similar items, by the cosine of their users, of `implicit`."""
    from implicit.nearest_neighbours import CosineRecommender

    model = CosineRecommender(K=int(options["neighbours"]), num_threads=1)
    model.fit(sp.csr_matrix(train), show_progress=False)
    similar = sp.csr_array(model.similarity)
    return lambda users: (train[users] @ similar).toarray()


def als(train: sp.csr_array, options: Options) -> Fitted:
    """Score by alternating least squares, of `implicit`."""
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=int(options["factors"]),
        regularization=options["regularization"],
        alpha=options["alpha"],
        iterations=15,
        num_threads=1,
        random_state=0,
    )
    model.fit(sp.csr_matrix(train, dtype=np.float32), show_progress=False)
    return lambda users: model.user_factors[users] @ model.item_factors.T


def bpr(train: sp.csr_array, options: Options) -> Fitted:
    """Score by matrix factors trained to rank (BPR-MF), of `implicit`."""
    from implicit.bpr import BayesianPersonalizedRanking

    model = BayesianPersonalizedRanking(
        factors=64,
        learning_rate=options["rate"],
        regularization=options["regularization"],
        iterations=100,
        num_threads=1,
        random_state=0,
    )
    model.fit(sp.csr_matrix(train, dtype=np.float32), show_progress=False)
    return lambda users: model.user_factors[users] @ model.item_factors.T


def lightfm(train: sp.csr_array, options: Options) -> Fitted:
    """Score by factors trained with the WARP loss, of LightFM."""
    from lightfm import LightFM

    model = LightFM(64, loss="warp", learning_rate=options["rate"], random_state=0)
    rows, columns = train.nonzero()
    ends = rows.astype(np.int32), columns.astype(np.int32)
    known = sp.coo_matrix((np.ones(train.nnz, dtype=np.float32), ends), shape=train.shape)
    model.fit(known, epochs=int(options["epochs"]), num_threads=1)
    (user_biases, users), (item_biases, items) = (
        model.get_user_representations(),
        model.get_item_representations(),
    )
    return lambda chosen: users[chosen] @ items.T + item_biases + user_biases[chosen][:, None]


def ease(train: sp.csr_array, options: Options) -> Fitted:
    """Score by EASE: a linear model of each item by all others, in closed form."""
    if train.shape[1] > _MAX_DENSE:
        return _ease_on_gpu(train, options["penalty"])
    gram = (train.T @ train).toarray().astype(np.float64)
    gram[np.diag_indices_from(gram)] += options["penalty"]
    inverse = np.linalg.inv(gram)
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return lambda users: train[users] @ weights


def _ease_on_gpu(train: sp.csr_array, penalty: float) -> Fitted:
    import torch

    gram = torch.tensor((train.T @ train).toarray(), dtype=torch.float64, device="cuda")
    gram.diagonal().add_(penalty)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram))
    weights = (inverse / -inverse.diagonal()).float()
    weights.fill_diagonal_(0.0)

    def scores(users: NDArray[np.int64]) -> NDArray[np.floating]:
        rows = torch.tensor(train[users].toarray(), dtype=torch.float32, device="cuda")
        found: NDArray[np.floating] = (rows @ weights).cpu().numpy()
        return found

    return scores


def _ranking_steps(
    pairs: Any, items: int, epochs: int, draw: Any, parameters: list[Any], margin: Any
) -> None:
    """Train by Adam and the BPR loss; ``margin(u, i, j)`` gives margins and a penalty."""
    import torch

    batch, optimizer = 2048, torch.optim.Adam(parameters, lr=1e-3 if epochs > 60 else 5e-3)
    for _ in range(epochs):
        order: Any = torch.randperm(len(pairs), generator=draw).to(pairs.device)
        for some in order.split(batch):
            other = torch.randint(items, (len(some),), generator=draw).to(pairs.device)
            ahead, penalty = margin(pairs[some, 0], pairs[some, 1], other)
            loss = torch.nn.functional.softplus(-ahead).mean() + penalty / len(some)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def lightgcn(train: sp.csr_array, options: Options) -> Fitted:
    """Score by LightGCN: three layers, width 64, Adam and the BPR loss, as its paper trains it."""
    import torch

    device = "cuda" if _has_gpu() else "cpu"
    draw = torch.Generator().manual_seed(0)
    users, items = train.shape
    degrees = np.concatenate([np.diff(train.indptr), np.asarray(train.sum(axis=0)).ravel()])
    parts: Any = [[None, train], [train.T, None]]
    both: Any = sp.block_array(parts).tocoo()
    scale = 1.0 / np.sqrt(np.maximum(degrees, 1.0))
    values = torch.tensor(scale[both.row] * scale[both.col], dtype=torch.float32)
    ends = torch.tensor(np.stack([both.row, both.col]), dtype=torch.int64)
    graph = torch.sparse_coo_tensor(ends, values, (users + items,) * 2).coalesce().to(device)
    start = torch.empty(users + items, 64).normal_(0.0, 0.1, generator=draw).to(device)
    start.requires_grad_()
    pairs = torch.tensor(np.stack(train.nonzero(), axis=1), device=device)

    def layers() -> Any:
        found, total = start, start
        for _ in range(3):
            found = graph @ found
            total = total + found
        return total / 4

    def margin(u: Any, i: Any, j: Any) -> Any:
        final, (i, j) = layers(), (i + users, j + users)
        norm = start[u].square().sum() + start[i].square().sum() + start[j].square().sum()
        ahead = (final[u] * (final[i] - final[j])).sum(dim=1)
        return ahead, options["decay"] * norm / 2

    _ranking_steps(pairs, items, int(options["epochs"]), draw, [start], margin)
    with torch.no_grad():
        final = layers().cpu().numpy()
    return lambda chosen: final[chosen] @ final[users:].T


@dataclass(frozen=True, eq=False)
class Sharded:
    """A fitted recommender of shards, and what forgetting a user in one shard takes."""

    users: NDArray[np.float32]
    items: NDArray[np.float32]
    forget_seconds: float

    def __call__(self, chosen: NDArray[np.int64]) -> NDArray[np.floating]:
        found: NDArray[np.floating] = self.users[chosen] @ self.items.T
        return found


def receraser(train: sp.csr_array, options: Options) -> Fitted:
    """Score by RecEraser (Chen et al., WWW 2022): BPR-MF in shards, pooled by attention.

    Users and items are embedded by BPR-MF first; their interactions are divided into balanced
    shards by how near both ends are to a shard's (InBP). Each shard trains factors of its own. Then
    these are fixed, brought into one space by a linear map for each shard, and summed by attention
    weights of each user and each item, all trained with the BPR loss.
    """
    import torch

    draw, shards = torch.Generator().manual_seed(0), int(options["shards"])
    pairs = torch.tensor(np.stack(train.nonzero(), axis=1))
    epochs = int(options["epochs"])
    first = _factors(pairs, train.shape, epochs, draw)
    of = _balanced(pairs, first, shards, draw)
    found, spent = [], time.process_time()
    for shard in range(shards):
        found.append(_factors(pairs[of == shard], train.shape, epochs, draw))
    spent = (time.process_time() - spent) / shards
    started = time.process_time()
    users, items = _attended(pairs, found, train.shape, draw)
    return Sharded(users, items, spent + time.process_time() - started)


def _factors(pairs: Any, shape: Any, epochs: int, draw: Any) -> list[Any]:
    """Train BPR-MF of width 64."""
    import torch

    made = [torch.empty(n, 64).normal_(0.0, 0.1, generator=draw).requires_grad_() for n in shape]
    users, items = made

    def margin(u: Any, i: Any, j: Any) -> Any:
        norm = users[u].square().sum() + items[i].square().sum() + items[j].square().sum()
        return (users[u] * (items[i] - items[j])).sum(dim=1), 1e-3 * norm

    _ranking_steps(pairs, shape[1], epochs, draw, made, margin)
    return [part.detach() for part in made]


def _balanced(pairs: Any, ends: list[Any], shards: int, draw: Any) -> Any:
    """Divide interactions among shards of equal size, the nearest first; ten rounds of means."""
    import torch

    room = -(-len(pairs) // shards)
    chosen = torch.randperm(len(pairs), generator=draw)[:shards]
    anchors = [end[pairs[chosen, side]] for side, end in enumerate(ends)]
    of = torch.zeros(len(pairs), dtype=torch.int64)
    for _ in range(10):
        far = torch.ones(len(pairs), shards)
        for side, end in enumerate(ends):
            far *= torch.cdist(end, anchors[side])[pairs[:, side]]
        of[:] = -1
        left = [room] * shards
        for place in torch.argsort(far.reshape(-1)).tolist():
            pair, shard = divmod(place, shards)
            if left[shard] and of[pair] < 0:
                of[pair] = shard
                left[shard] -= 1
        anchors = [
            torch.stack([end[pairs[of == shard, side]].mean(dim=0) for shard in range(shards)])
            for side, end in enumerate(ends)
        ]
    return of


def _attended(
    pairs: Any, found: list[list[Any]], shape: Any, draw: Any, epochs: int = 20
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Train the maps and attention weights over fixed factors of shards."""
    import torch

    shards = len(found)
    fixed = [torch.stack([one[side] for one in found], dim=1) for side in (0, 1)]
    maps = (torch.eye(64).repeat(shards, 1, 1)).requires_grad_()
    asks = [torch.empty(64).normal_(0.0, 0.1, generator=draw).requires_grad_() for _ in (0, 1)]
    inner = [torch.empty(64, 64).normal_(0.0, 0.1, generator=draw).requires_grad_() for _ in (0, 1)]

    def pooled(side: int, chosen: Any) -> Any:
        rows = torch.einsum("nsd,sde->nse", fixed[side][chosen], maps)
        weights = torch.softmax(torch.relu(rows @ inner[side]) @ asks[side], dim=1)
        return (weights[:, :, None] * rows).sum(dim=1)

    def margin(u: Any, i: Any, j: Any) -> Any:
        user = pooled(0, u)
        return (user * (pooled(1, i) - pooled(1, j))).sum(dim=1), torch.zeros(())

    _ranking_steps(pairs, shape[1], epochs, draw, [maps, *asks, *inner], margin)
    with torch.no_grad():
        all_of: list[Any] = [torch.arange(n) for n in shape]
        users, items = (
            np.concatenate([pooled(side, part).numpy() for part in own.split(4096)])
            for side, own in enumerate(all_of)
        )
    return users, items


RIVALS: dict[str, Rival] = {
    "popular": Rival(popular, ({},)),
    "item-knn": Rival(item_knn, [{"neighbours": k} for k in (20, 50, 100, 200, 400)], "implicit"),
    "als": Rival(
        als,
        [
            {"factors": f, "regularization": 0.05, "alpha": a}
            for f, a in (
                *((64, 1.0), (64, 5.0), (64, 20.0)),
                *((128, 1.0), (128, 5.0), (128, 20.0), (128, 80.0)),
                *((256, 20.0), (256, 80.0)),
            )
        ],
        "implicit",
    ),
    "bpr": Rival(
        bpr,
        [{"rate": r, "regularization": d} for r in (0.01, 0.05) for d in (0.001, 0.01)],
        "implicit",
    ),
    "lightfm": Rival(
        lightfm, [{"rate": r, "epochs": e} for r in (0.02, 0.05) for e in (30, 100)], "lightfm"
    ),
    "ease": Rival(ease, [{"penalty": p} for p in (50, 100, 200, 400, 800)], dense=True),
    "lightgcn": Rival(
        lightgcn, [{"epochs": e, "decay": 1e-4} for e in (100, 200)], "torch", trained=True
    ),
    "receraser": Rival(
        receraser,
        [{"shards": 10, "epochs": e} for e in (100, 200)],
        "torch",
        trained=True,
        exact="given its partition",
    ),
}
