"""Tuned GIN and GCN, the rivals of `bench graphs`: whole graphs, over the published folds.

Of the nine training folds of a test fold, the next fold is held out. Every setting of `GRID` is
trained on the other eight, each epoch is judged on the fold held out, and the setting and epoch
that are best there (by the mean over five epochs; of equals, by the loss) are kept, for either
network on its own. The chosen setting is then trained once more on all nine folds for as many
epochs. Nodes are told by their labels and degrees, edges by their labels, which every layer learns
a vector for.

The networks of some folds are trained side by side, as one network whose weights have a leading
axis: they share neither weights nor batches, nor sums over a batch. On a GPU that is all folds, on
a core one.

Needs PyTorch and NumPy and nothing of this package:

    python tuned_graphs.py FOLDER OUT.jsonl [--processes N] [--device cuda] [NAME | NAME:0-4]...

reads collections ``NAME.npz`` of a folder, and goes on where it was interrupted: a line for every
fold of every collection and network, in the order that they are asked for.
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

EPOCHS, PATIENCE, HALVED, BATCH, FOLDS = 80, 20, 30, 64, 10
# Epochs whose scores on the fold held out are averaged, and the largest degree that is told apart.
WINDOW, DEGREES = 5, 63
NAMES = ("nci1", "tox21", "proteins", "imdbbinary", "esol", "enzymes", "ptc", "mutag")

Graphs = NDArray[np.int64]


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
    Setting("gin", 5, 64, "sum", 0.5, 0.003),
    Setting("gcn", 3, 64, "mean", 0.0, 0.01),
    Setting("gcn", 3, 64, "sum", 0.2, 0.005),
    Setting("gcn", 5, 32, "mean", 0.2, 0.01),
    Setting("gcn", 5, 64, "sum", 0.5, 0.003),
)


class World:
    """A collection on a device; its last node and its last graph are empty, to fill batches."""

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
        x = np.zeros((n + 1, int(told.max()) + DEGREES + 2), dtype=np.float32)
        x[np.arange(n), told] = x[np.arange(n), np.minimum(degree[:n], DEGREES) - DEGREES - 1] = 1
        kinds = np.unique(got.get("edge_label", np.zeros(len(pairs))), return_inverse=True)[1]
        counts = np.zeros((n + 1, int(kinds.max()) + 1), dtype=np.float32)
        np.add.at(counts, (rows, np.tile(kinds, 2)[order]), 1)
        root = 1 / np.sqrt(degree + 1.0)

        def put(values: NDArray[Any]) -> Tensor:
            return torch.from_numpy(values).to(device)

        self.nodes, self.on_gpu = n, device != "cpu"
        self.offset, self.sizes = put(offset), put(np.append(np.diff(offset), 0))
        self.degree, self.start = put(degree), put(np.cumsum(degree) - degree)
        self.ends, self.shares = put(ends), put((root[rows] * root[ends]).astype(np.float32))
        self.own = put((root**2).astype(np.float32)[:, None])
        self.kinds = put(counts[:, : 0 if counts.shape[1] == 1 else None])
        # What the first layer reads, whose sums over neighbours are always the same.
        plain, read = put(x[:, x.any(0)]), put(rows)
        self.plain = plain
        near = plain[self.ends]
        self.first = {
            "gin": plain.index_add(0, read, near),
            "gcn": (plain * self.own).index_add(0, read, near * self.shares[:, None]),
        }

    def room(self, graphs: Tensor) -> tuple[int, int]:
        """Return how many nodes a network, and how many entries a step need at the most."""
        nodes, first = self.sizes[graphs], self.offset[graphs]
        before = torch.cat([self.degree.new_zeros(1), torch.cumsum(self.degree, 0)])
        entries = before[first + nodes] - before[first]
        return int(nodes.sum(-1).max()) + 1, int(entries.sum((-1, -2)).max())


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
    runs = torch.arange(steps * networks, device=graphs.device).view(steps, networks, 1)
    first = (runs * nodes + sizes.cumsum(2) - sizes).flatten()
    flat = graphs.flatten()
    owner, within = _repeated(sizes.flatten())
    node, slot = world.offset[flat][owner] + within, first[owner] + within
    all_nodes = torch.full((steps * wide,), world.nodes, device=graphs.device)
    owners = torch.full_like(all_nodes, networks * most)
    all_nodes[slot], owners[slot] = node, owner % (networks * most)
    of, at = _repeated(world.degree[node])
    entry, here = world.start[node][of] + at, slot[of]
    there, step = here + world.ends[entry] - node[of], here // wide
    count = torch.bincount(step, minlength=steps)
    place = torch.arange(len(step), device=graphs.device) - (count.cumsum(0) - count)[step]
    ends = torch.full((steps, 2, entries), wide - 1, device=graphs.device)
    ends[step, 0, place], ends[step, 1, place] = here % wide, there % wide
    shares = torch.zeros((steps, entries), device=graphs.device)
    shares[step, place] = world.shares[entry]
    shape = (steps, networks, nodes)
    return Batches(graphs, all_nodes.view(shape), owners.view(steps, wide), ends, shares)


def _repeated(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return each place as often as its count says, and how many of it came before."""
    owner = torch.repeat_interleave(counts)
    first = counts.cumsum(0) - counts
    return owner, torch.arange(len(owner), device=counts.device) - first[owner]


class _Sum(torch.autograd.Function):
    """Sum over neighbours. Edges go both ways, so the derivative is the same sum."""

    @staticmethod
    def forward(ctx: Any, over: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
        ctx.over = over
        return over(h)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.over(grad.contiguous())


def _over(ends: Tensor, shares: Tensor | None, rows: int, on_gpu: bool) -> Callable[..., Tensor]:
    """Return the sum over neighbours: quickest entry by entry on a GPU, by a matrix on a core."""
    if on_gpu:

        def over(h: Tensor) -> Tensor:
            near = h.index_select(0, ends[1])
            near = near if shares is None else near * shares[:, None]
            return torch.zeros_like(h).index_add(0, ends[0], near)

        return over
    values = torch.ones(ends.shape[1]) if shares is None else shares
    start = torch.searchsorted(ends[0], torch.arange(rows + 1))
    shape = (rows, rows)
    return torch.sparse_csr_tensor(start, ends[1], values, shape, check_invariants=False).matmul


class Norm(nn.Module):
    """A batch norm and ReLU for each network; rows that are left over are zero before and after."""

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
            left = h.shape[1] - count  # each is as far off as the mean is long
            var = ((h - mean).square().sum(1, keepdim=True) - left * mean.square()) / count
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
        self.first, self.norm = _weights(networks, width, out), Norm(networks, out)
        self.edges = _weights(networks, kinds, width if conv == "gin" else out)
        self.gin = conv == "gin"
        if self.gin:
            self.second, self.then = _weights(networks, out, out), Norm(networks, out)

    def forward(
        self, h: Tensor, read: Callable[[Tensor], Tensor], kinds: Tensor, there: Tensor
    ) -> Tensor:
        told = kinds @ self.edges if kinds.shape[2] else 0.0
        if not self.gin:
            return self.norm(read(h @ self.first) + told, there)
        h = self.norm((read(h) + told) @ self.first, there)
        return self.then(h @ self.second, there)


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
        world, gin = self.world, self.setting.conv == "gin"
        there = (batch.nodes < world.nodes).float()[..., None]
        kinds, own = world.kinds[batch.nodes], 1.0 if gin else world.own[batch.nodes]
        shares = None if gin else batch.shares
        over = _over(batch.ends, shares, batch.nodes.numel(), world.on_gpu)

        def read(h: Tensor) -> Tensor:
            total: Tensor = _Sum.apply(over, h.flatten(0, 1))  # type: ignore[no-untyped-call]
            return own * h + total.view(h.shape)

        def ready(h: Tensor) -> Tensor:
            return h

        h, seen = world.first[self.setting.conv][batch.nodes], []
        sizes = world.sizes[batch.graphs].clamp(min=1)[..., None]
        for at, layer in enumerate(self.layers):
            h = layer(h, read if at else ready, kinds, there)
            total = h.new_zeros(batch.graphs.numel() + 1, h.shape[2])
            total = total.index_add(0, batch.owners, h.flatten(0, 1))[:-1]
            total = total.view(*batch.graphs.shape, -1)
            seen.append(total / sizes if self.setting.readout == "mean" else total)
        out = F.dropout(torch.cat(seen, 2), self.setting.dropout, self.training)
        return out @ self.head + self.bias


class Target:
    """What is learned of a collection, and how it is scored: by labels of training graphs alone."""

    def __init__(self, world: World, learned: list[Graphs]) -> None:
        y = self.y = world.y
        self.kind = "several" if y.ndim == 2 else "numbers" if y.dtype.kind == "f" else "classes"
        self.outputs = {"several": y.shape[-1], "numbers": 1}.get(self.kind, int(y.max()) + 1)
        wanted, here = y.astype(np.float32), world.own.device
        self.centre = np.array([wanted[some].mean() for some in learned])[:, None]
        self.scale = np.array([wanted[some].std() for some in learned])[:, None]
        # Of the empty graph nothing is known.
        known = np.append(y >= 0 if y.ndim == 2 else np.ones_like(y), 0 * y[:1], 0)
        self.known = torch.from_numpy(known.astype(np.float32)).to(here)
        self.told = torch.from_numpy(np.append(wanted, 0 * wanted[:1], 0)).to(here)
        self.frame = [torch.from_numpy(part).to(here) for part in (self.centre, self.scale)]

    def losses(self, out: Tensor, graphs: Tensor) -> Tensor:
        """Return each network's cross-entropy over what is known, or squared error."""
        y, known = self.told[graphs], self.known[graphs]
        if self.kind == "classes":
            each = F.cross_entropy(out.flatten(0, 1), y.flatten().long(), reduction="none")
            each = each.view(y.shape)
        elif self.kind == "numbers":
            each = (out[..., 0] - (y - self.frame[0]) / self.frame[1]) ** 2
        else:
            each = F.binary_cross_entropy_with_logits(out, y.clamp(min=0), reduction="none")
        over = tuple(range(1, known.ndim))
        return (each * known).sum(over) / known.sum(over).clamp(min=1)

    def score(self, out: NDArray[np.float64], graphs: Graphs, network: int) -> float:
        """Return the accuracy, the mean AUC or R2."""
        y = self.y[graphs]
        if self.kind == "several":
            return mean_auc(y, out)
        if self.kind == "numbers":
            wrong = y - (out[:, 0] * self.scale[network] + self.centre[network])
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


def epochs_of(learned: list[Graphs], epochs: int, nobody: int, seed: int) -> Graphs:
    """Draw batches ``[epochs, steps, networks, most graphs]``: in an epoch each graph is once."""
    draw, steps = np.random.default_rng(seed), -(-max(len(some) for some in learned) // BATCH)
    out = np.full((epochs, steps, len(learned), BATCH), nobody)
    for epoch in out:
        for network, some in enumerate(learned):
            for step, part in enumerate(np.array_split(draw.permutation(some), steps)):
                epoch[step, network, : len(part)] = part
    return out


def _stepper(
    net: Networks, target: Target, adam: torch.optim.Adam, batch: Batches
) -> Callable[[], None]:
    """Return a step of training on a batch; on a GPU recorded, and played back."""

    def step() -> None:
        adam.zero_grad(set_to_none=True)
        target.losses(net(batch), batch.graphs).sum().backward()  # type: ignore[no-untyped-call]
        adam.step()

    if not net.world.on_gpu:
        return step
    kept = {name: values.clone() for name, values in net.state_dict().items()}
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    played, again = torch.cuda.CUDAGraph(), step
    try:
        with torch.cuda.graph(played):
            step()
        again = played.replay
    except RuntimeError as error:
        print(f"not recorded, so slower: {error}", flush=True)
    net.load_state_dict(kept)
    for state in adam.state.values():
        for values in state.values():
            values.zero_()
    return again


@dataclass(frozen=True)
class Found:
    """A trained network: its scores on the fold held out, its epochs, and its test score."""

    validation: tuple[float, float]
    epochs: int
    test: float


def trained(
    world: World,
    setting: Setting,
    seed: int,
    parts: tuple[list[Graphs], list[Graphs], list[Graphs]],
    until: list[int] | None = None,
    most: int = EPOCHS,
) -> list[Found]:
    """Train a network for each fold, and stop where the graphs held out say so, or at an epoch.

    Patience and the steps at which the rate is halved grow with the most epochs.

    ``parts``: for each network the graphs that it learns, those held out, and those of the test.
    """
    torch.manual_seed(seed)
    (learned, held, tested), here = parts, world.own.device
    target, count = Target(world, learned), len(learned)
    net = Networks(world, setting, count, target.outputs).to(here)
    rate = torch.tensor(setting.lr, device=here)
    adam = torch.optim.Adam(net.parameters(), lr=rate, fused=True, capturable=world.on_gpu)
    epochs = max(until) if until else most
    drawn = torch.from_numpy(epochs_of(learned, epochs, len(world.y), seed)).to(here)
    nodes, entries = np.max([world.room(epoch) for epoch in drawn], 0).tolist()
    first = laid_out(world, drawn[0], nodes, entries).step(0)
    batch = Batches(*(part.clone() for part in vars(first).values()))
    net.train()
    step, ask = _stepper(net, target, adam, batch), Asked(world, held, tested)
    found, scores = [Found((-np.inf, -np.inf), 0, 0.0)] * count, []
    for epoch in range(1, epochs + 1):
        made = laid_out(world, drawn[epoch - 1], nodes, entries)
        for at in range(len(made.graphs)):
            batch.become(made.step(at))
            step()
        if epoch % max(1, HALVED * most // EPOCHS) == 0:
            rate.mul_(0.5)
        if until and epoch not in until:
            continue
        judged, test = ask(net, target)
        scores.append(judged)
        smooth = np.mean(scores[-WINDOW:], axis=0).tolist()
        for k in range(count):
            better = epoch == until[k] if until else (*smooth[k],) > found[k].validation
            if better:
                found[k] = Found((smooth[k][0], smooth[k][1]), epoch, test[k])
        if all(epoch - one.epochs >= PATIENCE * most // EPOCHS for one in found) and not until:
            break
    return found


class Asked:
    """The graphs that every epoch is judged by: of each network those held out, and its test."""

    def __init__(self, world: World, held: list[Graphs], tested: list[Graphs]) -> None:
        self.held, self.tested = held, tested
        rows = [np.append(*pair) for pair in zip(held, tested, strict=True)]
        asked = np.full((1, len(rows), max(map(len, rows))), len(world.y))
        self.judged = np.full((len(rows), max(map(len, held))), len(world.y))
        for k, row in enumerate(rows):
            asked[0, k, : len(row)], self.judged[k, : len(held[k])] = row, held[k]
        graphs = torch.from_numpy(asked).to(world.own.device)
        self.batch = laid_out(world, graphs, *world.room(graphs)).step(0)

    def __call__(self, net: Networks, target: Target) -> tuple[list[list[float]], list[float]]:
        """Return each network's score and loss (its sign turned), and its score in the test."""
        net.eval()
        with torch.no_grad():
            out = net(self.batch)
            judged = torch.from_numpy(self.judged).to(out.device)
            losses = target.losses(out[:, : judged.shape[1]], judged).tolist()
        net.train()
        told, scores = out.double().cpu().numpy(), []
        for k, (held, test) in enumerate(zip(self.held, self.tested, strict=True)):
            ends = len(held), len(held) + len(test)
            parts = (told[k, : ends[0]], held), (told[k, ends[0] : ends[1]], test)
            scores.append([target.score(*part, k) for part in parts])
        return [[score[0], -loss] for score, loss in zip(scores, losses, strict=True)], [
            score[1] for score in scores
        ]


def work(
    file: Path, folds: list[int], conv: str, most: int = EPOCHS, device: str = "cpu"
) -> list[dict[str, Any]]:
    """Choose a setting for each of some test folds, and train it on all nine other folds."""
    begun, world = time.perf_counter(), World(file, device)
    tested = [np.flatnonzero(world.fold == k) for k in folds]
    held = [np.flatnonzero(world.fold == (k + 1) % FOLDS) for k in folds]
    every = [np.flatnonzero(world.fold != k) for k in folds]
    learned = [np.setdiff1d(*pair) for pair in zip(every, held, strict=True)]
    grid = [setting for setting in GRID if setting.conv == conv]
    found = [
        trained(world, setting, number, (learned, held, tested), most=most)
        for number, setting in enumerate(grid)
    ]
    best = [max(range(len(grid)), key=lambda i: found[i][k].validation) for k in range(len(folds))]
    again: dict[int, Found] = {}
    for number in sorted(set(best)):
        own = [k for k, chosen in enumerate(best) if chosen == number]
        parts = [every[k] for k in own], [held[k] for k in own], [tested[k] for k in own]
        until = [found[number][k].epochs for k in own]
        refitted = trained(world, grid[number], number, parts, until, most)
        again |= dict(zip(own, refitted, strict=True))
    seconds = (time.perf_counter() - begun) / len(folds)
    return [
        {
            "dataset": file.stem,
            "fold": fold,
            "conv": conv,
            "settings": [
                asdict(one) | asdict(some[k]) for one, some in zip(grid, found, strict=True)
            ],
            "chosen": best[k],
            "stopped": found[best[k]][k].test,
            "refitted": again[k].test,
            "seconds": seconds,
        }
        for k, fold in enumerate(folds)
    ]


def jobs(names: list[str], done: set[tuple[str, int, str]], side: int) -> list[tuple[Any, ...]]:
    """List what is left, some folds side by side, of collections: ``nci1`` or ``ptc:7-9``."""
    found = []
    for name, _, some in (told.partition(":") for told in names):
        first, _, last = some.partition("-")
        asked = range(int(first), int(last or first) + 1) if some else range(FOLDS)
        for conv in ("gin", "gcn"):
            left = [fold for fold in asked if (name, fold, conv) not in done]
            found += [(name, left[at : at + side], conv) for at in range(0, len(left), side)]
    return found


def _begin() -> None:
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]


def _told(job: tuple[Any, ...]) -> list[dict[str, Any]]:
    return work(*job)


def rows_of(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file that are whole."""
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def main() -> None:
    """Work through folds of collections, in the order given."""
    asked = argparse.ArgumentParser()
    asked.add_argument("folder", type=Path)
    asked.add_argument("out", type=Path)
    asked.add_argument("names", nargs="*", default=NAMES)
    asked.add_argument("--processes", type=int, default=1)
    asked.add_argument("--epochs", type=int, default=EPOCHS)
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--side", type=int, help="folds side by side")
    given = asked.parse_intermixed_args()
    done = {(row["dataset"], row["fold"], row["conv"]) for row in rows_of(given.out)}
    side = given.side or (1 if given.device == "cpu" else FOLDS)
    left = [
        (given.folder / f"{name}.npz", folds, conv, given.epochs, given.device)
        for name, folds, conv in jobs(given.names, done, side)
    ]
    with (
        multiprocessing.get_context("spawn").Pool(given.processes, _begin) as pool,
        given.out.open("a") as out,
    ):
        for rows in pool.imap_unordered(_told, left):
            for row in rows:
                print(json.dumps(row), file=out, flush=True)
            print(row["dataset"], row["conv"], f"{row['seconds'] * len(rows):.0f} s", flush=True)


if __name__ == "__main__":
    main()
