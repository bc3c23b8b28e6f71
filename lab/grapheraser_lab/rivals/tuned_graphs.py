"""Tuned GIN and GCN, the rivals of `bench graphs`: whole graphs, over the published folds.

Of the nine training folds of a test fold, the next fold is held out. Every setting of `GRID` is
trained on the other eight, each epoch is judged on the fold held out, and the setting and epoch
that are best there (by the mean over five epochs; of equals, by the loss) are kept, for either
network on its own. The chosen setting is then trained once more on all nine folds for as many
epochs. Nodes are told by their labels and degrees, edges by their labels, which every layer learns
a vector for.

Needs PyTorch, NumPy and SciPy and nothing of this package:

    python tuned_graphs.py FOLDER OUT [--processes N] [--epochs N] [NAME | NAME:FIRST-LAST]...

reads collections ``NAME.npz`` of a folder, and goes on where it was interrupted: a file for every
fold of every collection and network, and a line for every setting. Batches are so small that a
core is as quick as an accelerator: what is parallel is folds, in so many processes, in the order
that they are given in.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

EPOCHS, PATIENCE, BATCH, FOLDS = 80, 20, 64, 10
# Epochs whose scores on the fold held out are averaged, and the largest degree that is told apart.
WINDOW, DEGREES = 5, 63
NAMES = ("mutag", "ptc", "esol", "imdbbinary", "enzymes", "proteins", "nci1", "tox21")


# On graphs held out: the score, and the loss with its sign turned.
Quality = tuple[float, ...]


@dataclass(frozen=True)
class Setting:
    """One setting of a tuned network."""

    conv: str
    layers: int
    hidden: int
    readout: str
    dropout: float
    lr: float


GRID = (
    Setting("gin", 3, 32, "sum", 0.0, 0.01),
    Setting("gin", 5, 32, "sum", 0.5, 0.01),
    Setting("gin", 3, 64, "mean", 0.2, 0.005),
    Setting("gcn", 3, 64, "mean", 0.0, 0.01),
    Setting("gcn", 3, 64, "sum", 0.2, 0.005),
    Setting("gcn", 5, 32, "mean", 0.2, 0.01),
)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some graphs: their nodes, the edges between them, and whose each node is."""

    x: Tensor
    kinds: Tensor
    plain: Tensor
    scaled: Tensor
    own: Tensor
    owner: Tensor
    sizes: Tensor


class World:
    """A collection: nodes told by labels and degrees, neighbours as a sparse matrix."""

    def __init__(self, file: Path) -> None:
        with np.load(file) as found:
            got = dict(found)
        self.offset = got["node_offset"].astype(np.int64)
        self.y, self.fold = got["y"], got["fold"]
        n, pairs = int(self.offset[-1]), got["edges"].astype(np.int64)
        ones = np.ones(2 * len(pairs), dtype=np.float32)
        ends = np.concatenate([pairs, pairs[:, ::-1]]).T
        plain = sp.csr_array((ones, (ends[0], ends[1])), (n, n))
        plain.sort_indices()
        self.start, self.ends = plain.indptr.astype(np.int64), plain.indices.astype(np.int64)
        degree = np.diff(self.start)
        told = np.unique(got.get("node_label", np.zeros(n)), return_inverse=True)[1]
        self.x = np.hstack([_one_hot(told), _one_hot(np.minimum(degree, DEGREES))])
        root = 1 / np.sqrt(degree + 1.0)
        rows = np.repeat(np.arange(n), degree)
        self.shares = (root[rows] * root[self.ends]).astype(np.float32)
        self.own = (root**2).astype(np.float32)
        kinds = np.unique(got.get("edge_label", np.zeros(len(pairs))), return_inverse=True)[1]
        counts = sp.csr_array((ones, (ends[0], np.tile(kinds, 2))), (n, int(kinds.max()) + 1))
        self.kinds = counts.toarray() if counts.shape[1] > 1 else np.zeros((n, 0), dtype=np.float32)

    def batch(self, graphs: NDArray[np.int64]) -> Batch:
        """Put graphs beside each other."""
        sizes = self.offset[graphs + 1] - self.offset[graphs]
        nodes = _ranges(self.offset[graphs], sizes)
        owner = np.repeat(np.arange(len(graphs)), sizes)
        shift = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - self.offset[graphs]
        degree = self.start[nodes + 1] - self.start[nodes]
        entries = _ranges(self.start[nodes], degree)
        start = np.concatenate([[0], np.cumsum(degree)])
        ends = self.ends[entries] + np.repeat(shift[owner], degree)

        def matrix(values: NDArray[np.float32]) -> Tensor:
            first, there, told = (torch.from_numpy(part) for part in (start, ends, values))
            shape = (len(nodes), len(nodes))
            return torch.sparse_csr_tensor(first, there, told, shape, check_invariants=False)

        plain, scaled = matrix(np.ones(len(ends), dtype=np.float32)), matrix(self.shares[entries])
        x, kinds, own, owners, each = (
            torch.from_numpy(part)
            for part in (
                self.x[nodes],
                self.kinds[nodes],
                self.own[nodes, None],
                owner,
                sizes[:, None].astype(np.float32),
            )
        )
        return Batch(x, kinds, plain, scaled, own, owners, each)


def _one_hot(kinds: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.eye(int(kinds.max()) + 1, dtype=np.float32)[kinds]


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


class _Neighbours(torch.autograd.Function):
    """Sum over neighbours. The matrix is symmetric, so the derivative is the same sum."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, h: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix @ h

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix @ grad.contiguous()


def _sum(matrix: Tensor, h: Tensor) -> Tensor:
    total: Tensor = _Neighbours.apply(matrix, h)  # type: ignore[no-untyped-call]
    return total


class Layer(nn.Module):
    """One step of message passing: neighbours and the edges to them, then norm and ReLU."""

    def __init__(self, conv: str, width: int, kinds: int, out: int) -> None:
        super().__init__()
        self.conv = conv
        self.first = nn.Linear(width, out)
        out_of_edges = width if conv == "gin" else out
        self.edges = nn.Linear(kinds, out_of_edges, bias=False) if kinds else None
        self.norm = nn.BatchNorm1d(out)
        if conv == "gin":
            self.then = nn.Sequential(nn.ReLU(), nn.Linear(out, out), nn.BatchNorm1d(out))

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        told = 0.0 if self.edges is None else self.edges(batch.kinds)
        if self.conv == "gin":
            h = self.then(self.norm(self.first(h + _sum(batch.plain, h) + told)))
        else:
            h = self.first(h)
            h = self.norm(_sum(batch.scaled, h) + batch.own * h + told)
        return F.relu(h)


class Net(nn.Module):
    """Layers, each of which is read out, and a linear head."""

    def __init__(self, world: World, setting: Setting, outputs: int) -> None:
        super().__init__()
        widths = [world.x.shape[1]] + [setting.hidden] * (setting.layers - 1)
        kinds = world.kinds.shape[1]
        self.layers = nn.ModuleList(
            Layer(setting.conv, width, kinds, setting.hidden) for width in widths
        )
        self.head = nn.Linear(setting.hidden * setting.layers, outputs)
        self.setting = setting

    def forward(self, batch: Batch) -> Tensor:
        h, read = batch.x, []
        for layer in self.layers:
            h = layer(h, batch)
            total = h.new_zeros(len(batch.sizes), h.shape[1]).index_add(0, batch.owner, h)
            read.append(total / batch.sizes if self.setting.readout == "mean" else total)
        out: Tensor = self.head(F.dropout(torch.cat(read, 1), self.setting.dropout, self.training))
        return out


class Target:
    """What is learned of a collection, and how it is scored: by labels of training graphs alone."""

    def __init__(self, y: NDArray[Any], learned: NDArray[np.int64]) -> None:
        self.y, self.kind = y, "several" if y.ndim == 2 else "classes"
        if y.dtype.kind == "f":
            self.kind = "numbers"
            self.centre, self.scale = float(y[learned].mean()), float(y[learned].std())
        self.outputs = {"several": y.shape[-1], "numbers": 1}.get(self.kind, int(y.max()) + 1)

    def loss(self, out: Tensor, graphs: NDArray[np.int64]) -> Tensor:
        """Return cross-entropy over what is known, or the squared error."""
        y = torch.from_numpy(self.y[graphs])
        if self.kind == "classes":
            return F.cross_entropy(out, y.long())
        if self.kind == "numbers":
            return F.mse_loss(out[:, 0], (y - self.centre) / self.scale)
        known = y >= 0
        return F.binary_cross_entropy_with_logits(out[known], y[known].float())

    def score(self, out: NDArray[np.float64], graphs: NDArray[np.int64]) -> float:
        """Return the accuracy, the mean AUC or R2."""
        y = self.y[graphs]
        if self.kind == "several":
            return mean_auc(y, out)
        if self.kind == "numbers":
            wrong = y - (out[:, 0] * self.scale + self.centre)
            return float(1 - (wrong**2).sum() / ((y - y.mean()) ** 2).sum())
        return float((out.argmax(1) == y).mean())


def mean_auc(y: NDArray[Any], likely: NDArray[Any]) -> float:
    """Return the mean over the targets of the share of pairs in the right order."""
    found = []
    for known, said in zip(y.T, likely.T, strict=True):
        ones, zeros = said[known == 1], np.sort(said[known == 0])
        below = np.searchsorted(zeros, ones, "left") + np.searchsorted(zeros, ones, "right")
        found.append(below.mean() / 2 / len(zeros))
    return float(np.mean(found))


def trained(
    world: World,
    setting: Setting,
    seed: int,
    learned: NDArray[np.int64],
    judged: NDArray[np.int64],
    epochs: int | None = None,
    most: int = EPOCHS,
) -> tuple[Net, Target, Quality, int]:
    """Train, and stop where the graphs held out say so, or after so many epochs.

    Patience and the steps at which the rate is halved grow with the most epochs.

    Returns: the network, what it learns, how good it is on the graphs held out, and the epoch.
    """
    torch.manual_seed(seed)
    draw, target = np.random.default_rng(seed), Target(world.y, learned)
    net = Net(world, setting, target.outputs)
    adam = torch.optim.Adam(net.parameters(), lr=setting.lr, fused=True)
    halved = torch.optim.lr_scheduler.StepLR(adam, max(1, 30 * most // EPOCHS), 0.5)
    best, chosen, kept = (-np.inf, -np.inf), 0, net.state_dict()
    scores: list[Quality] = []
    for epoch in range(1, (epochs or most) + 1):
        net.train()
        order = draw.permutation(learned)
        for at in range(0, len(order), BATCH):
            some = order[at : at + BATCH]
            if len(some) < 2:  # a norm over one graph says nothing
                continue
            adam.zero_grad(set_to_none=True)
            target.loss(net(world.batch(some)), some).backward()  # type: ignore[no-untyped-call]
            adam.step()
        halved.step()
        if epochs is not None:
            continue
        out = said(net, world, judged)
        loss = float(target.loss(torch.from_numpy(out), judged))
        scores.append((target.score(out, judged), -loss))
        smooth = tuple(np.mean(scores[-WINDOW:], axis=0).tolist())
        if smooth > best:
            best, chosen, kept = smooth, epoch, copy.deepcopy(net.state_dict())
        if epoch - chosen >= PATIENCE * most // EPOCHS:
            break
    if epochs is None:
        net.load_state_dict(kept)
    return net, target, best, epochs or chosen


def said(net: Net, world: World, graphs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the network's outputs for graphs."""
    net.eval()
    with torch.no_grad():
        parts = [net(world.batch(graphs[at : at + 512])) for at in range(0, len(graphs), 512)]
    out: NDArray[np.float64] = torch.cat(parts).double().numpy()
    return out


def work(file: Path, fold: int, conv: str, out: Path, most: int = EPOCHS) -> dict[str, Any]:
    """Choose a setting for one test fold, keeping every line, and train it on all nine folds."""
    path = out / f"{file.stem}-{fold}-{conv}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"settings": []}
    if "refitted" in found:
        return found
    world = World(file)
    held = world.fold == (fold + 1) % FOLDS
    test, judged = np.flatnonzero(world.fold == fold), np.flatnonzero(held)
    learned = np.flatnonzero((world.fold != fold) & ~held)
    grid = [setting for setting in GRID if setting.conv == conv]
    for number in range(len(found["settings"]), len(grid)):
        begun = time.process_time()
        net, target, quality, epoch = trained(
            world, grid[number], number, learned, judged, most=most
        )
        found["settings"].append(
            {
                **asdict(grid[number]),
                "validation": quality,
                "epochs": epoch,
                "test": target.score(said(net, world, test), test),
                "seconds": time.process_time() - begun,
            }
        )
        path.write_text(json.dumps(found))
    chosen = max(range(len(grid)), key=lambda i: tuple(found["settings"][i]["validation"]))
    best, every = found["settings"][chosen], np.concatenate([learned, judged])
    net, target, _, _ = trained(world, grid[chosen], chosen, every, judged, best["epochs"], most)
    found |= {"chosen": chosen, "stopped": best["test"]}
    found["refitted"] = target.score(said(net, world, test), test)
    path.write_text(json.dumps(found))
    return found


def cells(names: list[str]) -> Iterator[tuple[str, int, str]]:
    """List the folds of collections, each for both networks: ``nci1``, or ``nci1:7-9``."""
    for name, _, some in (told.partition(":") for told in names):
        first, _, last = some.partition("-")
        for fold in range(int(first), int(last or first) + 1) if some else range(FOLDS):
            for conv in ("gin", "gcn"):
                yield name, fold, conv


def _begin() -> None:
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]


def _told(job: tuple[Path, int, str, Path, int]) -> str:
    row = work(*job)
    spent = sum(line["seconds"] for line in row["settings"])
    file, fold, conv = job[:3]
    return f"{file.stem} {fold} {conv} {row['stopped']:.4f} {row['refitted']:.4f} {spent:.0f} s"


def main() -> None:
    """Work through folds of collections, in the order given."""
    asked = argparse.ArgumentParser()
    asked.add_argument("folder", type=Path)
    asked.add_argument("out", type=Path)
    asked.add_argument("names", nargs="*", default=NAMES)
    asked.add_argument("--processes", type=int, default=1)
    asked.add_argument("--epochs", type=int, default=EPOCHS)
    given = asked.parse_intermixed_args()
    given.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        (given.folder / f"{name}.npz", fold, conv, given.out, given.epochs)
        for name, fold, conv in cells(given.names)
    ]
    with multiprocessing.get_context("spawn").Pool(given.processes, _begin) as pool:
        for told in pool.imap_unordered(_told, jobs):
            print(told, flush=True)


if __name__ == "__main__":
    main()
