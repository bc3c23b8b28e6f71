"""A graph so small that every experiment runs on it in a moment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from grapheraser_lab.experiments.catalogue import Options


def write_tiny(path: Path, *, seed: int = 0) -> Path:
    """Ninety nodes in three communities that features and edges both tell, as a compact npz."""
    rng = np.random.Generator(np.random.PCG64(seed))
    y = np.arange(90) % 3
    x = sp.csr_array((rng.random((90, 12)) < 0.15 + 0.5 * (np.arange(12) % 3 == y[:, None])) * 1.0)
    pairs = rng.integers(0, 90, size=(700, 2))
    keep = (pairs[:, 0] < pairs[:, 1]) & (
        (y[pairs[:, 0]] == y[pairs[:, 1]]) | (rng.random(700) < 0.1)
    )
    edges = np.unique(pairs[keep], axis=0).T
    np.savez(
        path,
        x_data=x.data.astype(np.float32),
        x_indices=x.indices,
        x_indptr=x.indptr,
        x_shape=np.array(x.shape),
        edge_index=edges,
        y=y,
    )
    return path


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny(tmp_path_factory.mktemp("data") / "tiny.npz"))


@pytest.fixture
def options(tiny: str) -> Options:
    return Options(
        datasets=(tiny,),
        models=("gcn", "gat"),
        runs=2,
        epochs=2,
        requests=3,
        scratch_requests=2,
        num_shards=4,
    )
