"""Other recommenders, on the same matrices: each fitted afresh whenever somebody is forgotten."""

from __future__ import annotations

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
    """

    fit: Callable[[sp.csr_array, Options], Fitted]
    grid: Sequence[Options]
    needs: str = "numpy"
    dense: bool = False
    trained: bool = False

    def lacks(self, train: sp.csr_array) -> str | None:
        """Say why it can't be measured here; None where it can."""
        if find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        if self.dense and train.shape[1] > _MAX_DENSE:
            return f"a dense matrix of {train.shape[1]:,} items squared"
        if self.trained and train.nnz > _MAX_TRAINED:
            return "training takes a GPU"
        return None


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


def ease(train: sp.csr_array, options: Options) -> Fitted:
    """Score by EASE: a linear model of each item by all others, in closed form."""
    gram = (train.T @ train).toarray().astype(np.float64)
    gram[np.diag_indices_from(gram)] += options["penalty"]
    inverse = np.linalg.inv(gram)
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return lambda users: train[users] @ weights


def lightgcn(train: sp.csr_array, options: Options) -> Fitted:
    """Score by LightGCN: three layers, width 64, Adam and the BPR loss, as its paper trains it."""
    import torch

    draw = torch.Generator().manual_seed(0)
    users, items = train.shape
    degrees = np.concatenate([np.diff(train.indptr), np.asarray(train.sum(axis=0)).ravel()])
    parts: Any = [[None, train], [train.T, None]]
    both: Any = sp.block_array(parts).tocoo()
    scale = 1.0 / np.sqrt(np.maximum(degrees, 1.0))
    values = torch.tensor(scale[both.row] * scale[both.col], dtype=torch.float32)
    ends = torch.tensor(np.stack([both.row, both.col]), dtype=torch.int64)
    graph = torch.sparse_coo_tensor(ends, values, (users + items,) * 2).coalesce()
    start = torch.empty(users + items, 64).normal_(0.0, 0.1, generator=draw).requires_grad_()
    optimizer = torch.optim.Adam([start], lr=1e-3)
    rows, columns = (torch.tensor(end) for end in train.nonzero())

    def layers() -> Any:
        found, total = start, start
        for _ in range(3):
            found = graph @ found
            total = total + found
        return total / 4

    batch = 2048
    for _ in range(int(options["epochs"])):
        order = torch.randperm(len(rows), generator=draw)
        for at in range(0, len(order), batch):
            some = order[at : at + batch]
            other = torch.randint(items, (len(some),), generator=draw)
            final = layers()
            u, i, j = rows[some], columns[some] + users, other + users
            margin = (final[u] * (final[i] - final[j])).sum(dim=1)
            norm = start[u].square().sum() + start[i].square().sum() + start[j].square().sum()
            loss = torch.nn.functional.softplus(-margin).mean()
            loss = loss + options["decay"] * norm / (2 * len(some))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    with torch.no_grad():
        final = layers().numpy()
    return lambda chosen: final[chosen] @ final[users:].T


RIVALS: dict[str, Rival] = {
    "popular": Rival(popular, ({},)),
    "item-knn": Rival(item_knn, [{"neighbours": k} for k in (20, 50, 100, 200, 400)], "implicit"),
    "als": Rival(
        als,
        [
            {"factors": f, "regularization": 0.05, "alpha": a}
            for f in (64, 128)
            for a in (1.0, 5.0, 20.0)
        ],
        "implicit",
    ),
    "bpr": Rival(
        bpr,
        [{"rate": r, "regularization": d} for r in (0.01, 0.05) for d in (0.001, 0.01)],
        "implicit",
    ),
    "ease": Rival(ease, [{"penalty": p} for p in (50, 100, 200, 400, 800)], dense=True),
    "lightgcn": Rival(
        lightgcn,
        [{"epochs": e, "decay": 1e-4} for e in (100, 200)],
        "torch",
        trained=True,
    ),
}
