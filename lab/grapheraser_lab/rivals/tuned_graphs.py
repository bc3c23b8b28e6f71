"""Tuned GIN and GCN, the rivals of `bench graphs`: whole graphs, over the ten published folds.

Of the nine training folds of a test fold, the next fold is held out. A setting of `GRID` has two
networks for every test fold: one is trained on the other eight folds, and each of its epochs is
judged on the fold held out; the other is trained on all nine. The setting and the epoch that are
best on the fold held out (by the mean over five epochs; of equals, by the loss) are chosen for
each test fold and for either kind of network on its own (`bench.graph_rivals.chosen`): what they
say of the test fold is read off for both networks. Nodes are told by their labels and degrees,
edges by their labels, which every layer learns a vector for.

The twenty networks of a setting are trained side by side, as one network whose weights have a
leading axis: they share neither weights, nor sums over a batch, nor batches.

Needs PyTorch and NumPy and nothing of this package:

    python tuned_graphs.py FOLDER OUT [--processes N] [--epochs N] [--device cuda] [NAME]...

reads collections ``NAME.npz`` of a folder, and writes a file for every setting of every
collection, every ten epochs; files that are finished are kept as they are.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

EPOCHS, HALVED, BATCH, FOLDS = 100, 35, 64, 10
# The largest degree that is told apart.
DEGREES = 63
# Collections from the longest to train to the shortest.
NAMES = ("tox21", "nci1", "proteins", "imdbbinary", "esol", "enzymes", "ptc", "mutag")


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
    Setting("gin", 5, 64, "sum", 0.5, 0.003),
    Setting("gcn", 5, 64, "sum", 0.5, 0.003),
)


class World:
    """A collection: nodes told by labels and degrees, neighbours by entry, on a device.

    The last node and the last graph are empty: they fill what is left of a batch.
    """

    def __init__(self, file: Path, device: str) -> None:
        with np.load(file) as found:
            got = dict(found)
        offset, self.y, self.fold = got["node_offset"].astype(np.int64), got["y"], got["fold"]
        n, pairs = int(offset[-1]), got["edges"].astype(np.int64)
        rows, ends = np.concatenate([pairs, pairs[:, ::-1]]).T
        order = np.argsort(rows, kind="stable")
        rows, ends = rows[order], ends[order]
        degree = np.bincount(rows, minlength=n + 1)
        told = np.unique(got.get("node_label", np.zeros(n)), return_inverse=True)[1]
        x = np.hstack([_one_hot(told), _one_hot(np.minimum(degree[:n], DEGREES))])
        kinds = np.unique(got.get("edge_label", np.zeros(len(pairs))), return_inverse=True)[1]
        counts = np.zeros((n + 1, int(kinds.max()) + 1), dtype=np.float32)
        np.add.at(counts, (rows, np.tile(kinds, 2)[order]), 1)
        root = 1 / np.sqrt(degree + 1.0)

        def put(values: NDArray[Any]) -> Tensor:
            return torch.from_numpy(values).to(device)

        self.nodes, self.device = n, device
        self.offset, self.sizes = put(offset), put(np.append(np.diff(offset), 0))
        self.degree, self.start = put(degree), put(np.cumsum(degree) - degree)
        self.ends, self.shares = put(ends), put((root[rows] * root[ends]).astype(np.float32))
        self.own = put((root**2).astype(np.float32)[:, None])
        self.kinds = put(counts[:, : 0 if counts.shape[1] == 1 else None])
        plain = put(np.vstack([x, np.zeros((1, x.shape[1]), dtype=np.float32)]))
        # What the first layer reads, whose sums over neighbours are always the same.
        read, at = put(rows), plain[self.ends]
        self.first = {
            "gin": plain.index_add(0, read, at),
            "gcn": (plain * self.own).index_add(0, read, at * self.shares[:, None]),
        }

    def room(self, graphs: Tensor) -> tuple[int, int]:
        """Return how many nodes a network, and how many entries a step need at the most."""
        nodes, first = self.sizes[graphs], self.offset[graphs]
        before = torch.cat([self.degree.new_zeros(1), torch.cumsum(self.degree, 0)])
        entries = before[first + nodes] - before[first]
        return int(nodes.sum(-1).max()) + 1, int(entries.sum((-1, -2)).max())


def _one_hot(kinds: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.eye(int(kinds.max()) + 1, dtype=np.float32)[kinds]


@dataclass(frozen=True, eq=False)
class Batches:
    """Steps of batches, one for each network; or one step of them, without the leading axis.

    Attributes:
        graphs: ``[steps, networks, most graphs]``; those left over are the empty graph.
        nodes: ``[steps, networks, most nodes]``; those left over are the empty node.
        owners: of each node, the place of its graph in ``graphs``.
        ends: ``[steps, 2, most entries]``: the places of a node and its neighbour; those left over
            join the last node, which is always empty, to itself.
        shares: ``[steps, most entries]``: of GCN.
    """

    graphs: Tensor
    nodes: Tensor
    owners: Tensor
    ends: Tensor
    shares: Tensor

    def step(self, at: int) -> Batches:
        """Return the batches of one step."""
        return Batches(*(part[at] for part in vars(self).values()))

    def become(self, other: Batches) -> None:
        """Take other values, in place."""
        for part, values in zip(vars(self).values(), vars(other).values(), strict=True):
            part.copy_(values)


def laid_out(world: World, graphs: Tensor, nodes: int, entries: int) -> Batches:
    """Put graphs ``[steps, networks, most graphs]`` beside each other."""
    steps, networks, most = graphs.shape
    sizes, wide = world.sizes[graphs], networks * nodes
    runs = torch.arange(steps * networks, device=world.device).view(steps, networks, 1)
    first = (runs * nodes + sizes.cumsum(2) - sizes).flatten()
    flat, each = graphs.flatten(), sizes.flatten()
    owner, within = _repeated(each)
    node, slot = world.offset[flat][owner] + within, first[owner] + within
    all_nodes = torch.full((steps * wide,), world.nodes, device=world.device)
    owners = torch.full_like(all_nodes, networks * most)
    all_nodes[slot], owners[slot] = node, owner % (networks * most)
    of, at = _repeated(world.degree[node])
    entry = world.start[node][of] + at
    here = slot[of]
    there, step = here + world.ends[entry] - node[of], here // wide
    count = torch.bincount(step, minlength=steps)
    place = torch.arange(len(step), device=world.device) - (count.cumsum(0) - count)[step]
    ends = torch.full((steps, 2, entries), wide - 1, device=world.device)
    ends[step, 0, place], ends[step, 1, place] = here % wide, there % wide
    shares = torch.zeros((steps, entries), device=world.device)
    shares[step, place] = world.shares[entry]
    shape = (steps, networks, nodes)
    return Batches(graphs, all_nodes.view(shape), owners.view(steps, wide), ends, shares)


def _repeated(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return each place as often as its count says, and how many of it came before."""
    owner = torch.repeat_interleave(counts)
    first = counts.cumsum(0) - counts
    return owner, torch.arange(len(owner), device=counts.device) - first[owner]


class Norm(nn.Module):
    """A batch norm and ReLU for each network, over nodes that are there."""

    mean: Tensor
    var: Tensor

    def __init__(self, networks: int, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(networks, 1, width))
        self.shift = nn.Parameter(torch.zeros(networks, 1, width))
        self.register_buffer("mean", torch.zeros(networks, 1, width))
        self.register_buffer("var", torch.ones(networks, 1, width))

    def forward(self, h: Tensor, there: Tensor) -> Tensor:
        mean, var = self.mean, self.var
        if self.training:
            count = there.sum(1, keepdim=True)
            mean = h.sum(1, keepdim=True) / count
            var = (((h - mean) * there) ** 2).sum(1, keepdim=True) / count
            with torch.no_grad():
                self.mean.lerp_(mean, 0.1)
                self.var.lerp_(var * count / (count - 1), 0.1)
        scale = self.scale * torch.rsqrt(var + 1e-5)
        return F.relu(torch.addcmul(self.shift - mean * scale, h, scale)) * there


def _weights(networks: int, width: int, out: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(networks, width, out).uniform_(-1, 1) / max(width, 1) ** 0.5)


class Layer(nn.Module):
    """One step of message passing: neighbours and the edges to them, then norm and ReLU."""

    def __init__(self, conv: str, networks: int, width: int, kinds: int, out: int) -> None:
        super().__init__()
        self.conv = conv
        self.first = _weights(networks, width, out)
        self.edges = _weights(networks, kinds, width if conv == "gin" else out) if kinds else None
        self.norm = Norm(networks, out)
        if conv == "gin":
            self.second, self.then = _weights(networks, out, out), Norm(networks, out)

    def forward(self, h: Tensor, read: Callable[[Tensor], Tensor], known: Known) -> Tensor:
        told = 0.0 if self.edges is None else known.kinds @ self.edges
        if self.conv == "gin":
            h = self.norm((read(h) + told) @ self.first, known.there)
            out: Tensor = self.then(h @ self.second, known.there)
        else:
            out = self.norm(read(h @ self.first) + told, known.there)
        return out


@dataclass(frozen=True, eq=False)
class Known:
    """Parts of a batch that every layer reads."""

    there: Tensor
    kinds: Tensor


class Networks(nn.Module):
    """Networks of one setting side by side: layers, each of which is read out, a linear head."""

    def __init__(self, world: World, setting: Setting, networks: int, outputs: int) -> None:
        super().__init__()
        widths = [world.first["gin"].shape[1]] + [setting.hidden] * (setting.layers - 1)
        kinds = world.kinds.shape[1]
        self.layers = nn.ModuleList(
            Layer(setting.conv, networks, width, kinds, setting.hidden) for width in widths
        )
        self.head = _weights(networks, setting.hidden * setting.layers, outputs)
        self.bias = nn.Parameter(torch.zeros(networks, 1, outputs))
        self.world, self.setting = world, setting

    def forward(self, batch: Batches) -> Tensor:
        """Return outputs ``[networks, most graphs, outputs]``."""
        world, conv = self.world, self.setting.conv
        there = (batch.nodes < world.nodes).float()[..., None]
        known = Known(there, world.kinds[batch.nodes])
        own, shape = world.own[batch.nodes], batch.nodes.shape
        to, of = batch.ends

        def over(h: Tensor) -> Tensor:
            flat = h.flatten(0, 1)
            said, kept = flat.index_select(0, of), flat
            if conv == "gcn":
                said, kept = said * batch.shares[:, None], flat * own.flatten(0, 1)
            return kept.index_add(0, to, said).view(*shape, -1) * there

        def ready(h: Tensor) -> Tensor:
            return h

        h, read = world.first[conv][batch.nodes], []
        sizes = world.sizes[batch.graphs].clamp(min=1)[..., None]
        for at, layer in enumerate(self.layers):
            h = layer(h, over if at else ready, known)
            total = h.new_zeros(batch.graphs.numel() + 1, h.shape[2])
            total = total.index_add(0, batch.owners, h.flatten(0, 1))[:-1]
            total = total.view(*batch.graphs.shape, -1)
            read.append(total / sizes if self.setting.readout == "mean" else total)
        seen = F.dropout(torch.cat(read, 2), self.setting.dropout, self.training)
        return seen @ self.head + self.bias


class Target:
    """What is learned of a collection, and how it is scored: by labels of training graphs alone."""

    def __init__(self, world: World, learned: list[NDArray[np.int64]]) -> None:
        y = self.y = world.y
        self.kind = "several" if y.ndim == 2 else "numbers" if y.dtype.kind == "f" else "classes"
        self.outputs = {"several": y.shape[-1], "numbers": 1}.get(self.kind, int(y.max()) + 1)
        frames = np.zeros((len(learned), 2))
        if self.kind == "numbers":
            frames[:] = [(y[some].mean(), y[some].std()) for some in learned]
        self.frames = frames
        nobody = np.full((1, *y.shape[1:]), np.nan if self.kind == "numbers" else -1)
        self.told = torch.from_numpy(np.concatenate([y, nobody]).astype(np.float32))
        self.told = self.told.to(world.device)
        self.frame = torch.from_numpy(frames.astype(np.float32)).to(world.device)

    def losses(self, out: Tensor, graphs: Tensor) -> Tensor:
        """Return each network's cross-entropy over what is known, or squared error."""
        y = self.told[graphs]
        if self.kind == "classes":
            known = y >= 0
            wanted = y.clamp(min=0).long()
            each = F.cross_entropy(out.transpose(1, 2), wanted, reduction="none")
        elif self.kind == "numbers":
            known = ~torch.isnan(y)
            frame = self.frame[: len(out)]
            each = (out[..., 0] - (torch.nan_to_num(y) - frame[:, :1]) / frame[:, 1:]) ** 2
        else:
            known = y >= 0
            each = F.binary_cross_entropy_with_logits(out, y.clamp(min=0), reduction="none")
        over = tuple(range(1, known.ndim))
        return (each * known).sum(over) / known.sum(over).clamp(min=1)

    def score(self, out: NDArray[np.float64], graphs: NDArray[np.int64], network: int) -> float:
        """Return the accuracy, the mean AUC or R2."""
        y = self.y[graphs]
        if self.kind == "several":
            return mean_auc(y, out)
        if self.kind == "numbers":
            centre, scale = self.frames[network]
            wrong = y - (out[:, 0] * scale + centre)
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


def epochs_of(
    learned: list[NDArray[np.int64]], epochs: int, nobody: int, seed: int
) -> NDArray[np.int64]:
    """Draw batches ``[epochs, steps, networks, most graphs]``, in which each graph is once."""
    draw = np.random.default_rng(seed)
    steps = -(-min(len(some) for some in learned) // BATCH)
    most = -(-max(len(some) for some in learned) // steps)
    out = np.full((epochs, steps, len(learned), most), nobody)
    for network, some in enumerate(learned):
        first = -(-np.arange(steps) * len(some) // steps)
        step = np.searchsorted(first, np.arange(len(some)), side="right") - 1
        for epoch in range(epochs):
            order = draw.permutation(some)
            out[epoch, step, network, np.arange(len(some)) - first[step]] = order
    return out


def _stepper(
    net: Networks, target: Target, adam: torch.optim.Adam, batch: Batches
) -> Callable[[], None]:
    """Return a step of training on a batch; on a GPU recorded, and played back."""

    def step() -> None:
        adam.zero_grad(set_to_none=True)
        target.losses(net(batch), batch.graphs).sum().backward()  # type: ignore[no-untyped-call]
        adam.step()

    if net.world.device == "cpu":
        return step
    kept = {name: values.clone() for name, values in net.state_dict().items()}
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    played = torch.cuda.CUDAGraph()
    adam.zero_grad(set_to_none=True)
    again: Callable[[], None] = played.replay
    try:
        with torch.cuda.graph(played):
            step()
    except RuntimeError as error:
        print(f"not recorded, so slower: {error}", flush=True)
        again = step
    net.load_state_dict(kept)
    for state in adam.state.values():
        for values in state.values():
            values.zero_()
    return again


class Folds:
    """Each test fold's graphs, those held out, and those that each network learns from."""

    def __init__(self, world: World) -> None:
        fold = np.arange(FOLDS)
        self.test = [np.flatnonzero(world.fold == k) for k in fold]
        self.held = [np.flatnonzero(world.fold == (k + 1) % FOLDS) for k in fold]
        every = [np.flatnonzero(world.fold != k) for k in fold]
        pairs = zip(every, self.held, strict=True)
        self.learned = [*(np.setdiff1d(*pair) for pair in pairs), *every]
        self.world, self.held_out = world, _filled(world, self.held)
        both = [np.concatenate(pair) for pair in zip(self.held, self.test, strict=True)]
        asked = _filled(world, both * 2)[None]
        self.asked = laid_out(world, asked, *world.room(asked)).step(0)

    def scores(self, net: Networks, target: Target) -> dict[str, list[Any]]:
        """Return what an epoch adds to the curves of `trained`."""
        net.eval()
        with torch.no_grad():
            out = net(self.asked)
            told = out[:FOLDS, : self.held_out.shape[1]]
            losses = target.losses(told, self.held_out).tolist()
        said = out.double().cpu().numpy()
        judged, tested = [], []
        for i in range(2 * FOLDS):
            held, test = self.held[i % FOLDS], self.test[i % FOLDS]
            judged.append(target.score(said[i, : len(held)], held, i))
            tested.append(target.score(said[i, len(held) : len(held) + len(test)], test, i))
        return {
            "judged": [[judged[k], -losses[k]] for k in range(FOLDS)],
            "stopped": tested[:FOLDS],
            "refitted": tested[FOLDS:],
        }


def _filled(world: World, graphs: list[NDArray[np.int64]]) -> Tensor:
    out = np.full((len(graphs), max(map(len, graphs))), len(world.y))
    for row, some in zip(out, graphs, strict=True):
        row[: len(some)] = some
    return torch.from_numpy(out).to(world.device)


def trained(
    world: World, setting: Setting, seed: int, epochs: int, told: Callable[[dict[str, Any]], None]
) -> None:
    """Train a setting's networks, and tell of each epoch how good it was on each fold.

    ``judged``: ``[epochs, folds, 2]``, the score on the fold held out and the loss with its sign
    turned; ``stopped`` and ``refitted``: ``[epochs, folds]``, what the network that was trained
    without the fold held out, and the one trained with it, score on the test fold.
    """
    torch.manual_seed(seed)
    begun, folds = time.perf_counter(), Folds(world)
    target = Target(world, folds.learned)
    net = Networks(world, setting, 2 * FOLDS, target.outputs).to(world.device)
    rate = torch.tensor(setting.lr, device=world.device)
    on_gpu = world.device != "cpu"
    adam = torch.optim.Adam(net.parameters(), lr=rate, fused=True, capturable=on_gpu)
    drawn = torch.from_numpy(epochs_of(folds.learned, epochs, len(world.y), seed))
    drawn = drawn.to(world.device)
    nodes, entries = (max(most) for most in zip(*map(world.room, drawn), strict=True))
    first = laid_out(world, drawn[0], nodes, entries).step(0)
    batch = Batches(*(part.clone() for part in vars(first).values()))
    net.train()
    step = _stepper(net, target, adam, batch)
    curves: dict[str, list[Any]] = {"judged": [], "stopped": [], "refitted": []}
    for epoch in range(1, epochs + 1):
        net.train()
        made = laid_out(world, drawn[epoch - 1], nodes, entries)
        for at in range(len(made.graphs)):
            batch.become(made.step(at))
            step()
        if epoch % HALVED == 0:
            rate.mul_(0.5)
        for name, scores in folds.scores(net, target).items():
            curves[name].append(scores)
        if epoch % 10 == 0 or epoch == epochs:
            seconds = time.perf_counter() - begun
            told({**asdict(setting), **curves, "seconds": seconds, "finished": epoch == epochs})


def work(file: Path, number: int, out: Path, epochs: int = EPOCHS, device: str = "cpu") -> str:
    """Train one setting on a collection, unless that is done; say how long it took."""
    path = out / f"{file.stem}-{number}.json"
    if not path.exists() or not json.loads(path.read_text())["finished"]:
        world = World(file, device)
        trained(world, GRID[number], number, epochs, lambda row: _put(path, row))
    return f"{path.stem} {json.loads(path.read_text())['seconds']:.0f} s"


def _put(path: Path, row: dict[str, Any]) -> None:
    path.with_suffix(".new").write_text(json.dumps(row))
    path.with_suffix(".new").replace(path)


def _told(job: tuple[Path, int, Path, int, str]) -> str:
    return work(*job)


def main() -> None:
    """Work through the settings, and for each through collections, in the order given."""
    asked = argparse.ArgumentParser()
    asked.add_argument("folder", type=Path)
    asked.add_argument("out", type=Path)
    asked.add_argument("names", nargs="*", default=NAMES)
    asked.add_argument("--processes", type=int, default=1)
    asked.add_argument("--epochs", type=int, default=EPOCHS)
    asked.add_argument("--device", default="cpu")
    given = asked.parse_intermixed_args()
    given.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        (given.folder / f"{name}.npz", number, given.out, given.epochs, given.device)
        for number in range(len(GRID))
        for name in given.names
    ]
    begin = torch.set_num_threads
    with multiprocessing.get_context("spawn").Pool(given.processes, begin, (1,)) as pool:
        for told in pool.imap_unordered(_told, jobs):
            print(told, flush=True)


if __name__ == "__main__":
    main()
