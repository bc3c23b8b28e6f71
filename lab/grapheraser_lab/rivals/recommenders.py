"""Other recommenders, on the same matrices: each fitted afresh whenever somebody is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser_lab.rivals.factors import Options, bpr_mf, has_gpu, lightgcn, receraser

# From users to scores of all items ``[len(users), items]``.
Fitted: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.floating]]
# Penalties of trained factors to choose from.
_DECAYS = (1e-4, 1e-3, 1e-2)
# Items that a dense matrix of all pairs is made for.
_MAX_DENSE = 20_000
# Interactions that factors are trained on without a GPU.
_MAX_TRAINED = 200_000


@dataclass(frozen=True)
class Rival:
    """A way to recommend.

    Attributes:
        fit: from a matrix and options to what scores; where there are stages, it is also given
            what is shown the factors after each epoch.
        grid: of options to choose from.
        needs: the package that has to be installed.
        dense: whether it makes a dense matrix of all pairs of items.
        trained: whether it is trained by gradient descent, which takes a GPU on large data.
        stages: numbers of epochs to choose from; the grid has the other options.
        exact: in what sense it is what a fit on the rest would be, after somebody was forgotten.
    """

    fit: Callable[..., Fitted]
    grid: Sequence[Options]
    needs: str = "numpy"
    dense: bool = False
    trained: bool = False
    stages: Sequence[int] = ()
    exact: str = "by fitting again"

    def lacks(self, train: sp.csr_array) -> str | None:
        """Say why it can't be measured here; None where it can."""
        if find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        if self.dense and train.shape[1] > _MAX_DENSE and not has_gpu():
            return f"a dense matrix of {train.shape[1]:,} items squared"
        if self.trained and train.nnz > _MAX_TRAINED and not has_gpu():
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
    "ease": Rival(ease, [{"penalty": 12.5 * 2**p} for p in range(9)], dense=True),
    "bpr-mf": Rival(
        bpr_mf, [{"decay": d} for d in _DECAYS], "torch", trained=True, stages=range(20, 401, 20)
    ),
    "lightgcn": Rival(
        lightgcn, [{"decay": d} for d in _DECAYS], "torch", trained=True, stages=range(50, 1001, 50)
    ),
    # Its paper's recipe, which leaves the epoch to choose.
    "lightgcn-recipe": Rival(
        lightgcn, [{"decay": 1e-4}], "torch", trained=True, stages=range(50, 1001, 50)
    ),
    "receraser": Rival(
        receraser,
        [{"shards": 10, "epochs": e, "decay": d} for e in (100, 400) for d in (1e-3, 1e-2)],
        "torch",
        trained=True,
        exact="given its partition",
    ),
}
