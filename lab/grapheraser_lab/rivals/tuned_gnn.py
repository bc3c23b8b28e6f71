"""Tuned GNNs, the rivals of `bench tuned`: residual connections, norms, two to five layers.

As in "Classic GNNs are strong baselines" (2024): every setting of `GRID` is trained on the training
nodes without a part held out for validation, each epoch is judged on that part, and the setting and
epoch that are best there are kept. The chosen setting is then trained once more on all training
nodes for as many epochs. Features and neighbourhoods are sparse matrices; every node's features and
edges are seen in training, labels of training nodes alone.

Needs PyTorch, NumPy and SciPy and nothing of this package, so that it runs wherever there is a GPU:

    python tuned_gnn.py FOLDER OUT [WORKERS]

reads what `bench tuned` exported into a folder, and goes on where it was interrupted. Each setting
of each split is kept as soon as it is trained.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

EPOCHS, PATIENCE, EVERY, HEADS = 400, 60, 2, 4
PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Setting:
    """One setting of a tuned GNN."""

    conv: str
    layers: int
    hidden: int
    norm: str
    dropout: float
    residual: bool
    lr: float
    weight_decay: float


GRID = (
    Setting("gcn", 2, 256, "none", 0.7, False, 0.01, 5e-4),
    Setting("gcn", 2, 512, "layer", 0.5, True, 0.005, 5e-4),
    Setting("gcn", 3, 512, "batch", 0.5, True, 0.005, 5e-5),
    Setting("gcn", 5, 256, "batch", 0.3, True, 0.005, 5e-5),
    Setting("sage", 2, 256, "none", 0.7, False, 0.005, 5e-4),
    Setting("sage", 2, 512, "layer", 0.5, True, 0.005, 5e-4),
    Setting("sage", 3, 512, "batch", 0.5, True, 0.003, 5e-5),
    Setting("sage", 5, 256, "layer", 0.3, True, 0.003, 5e-5),
    Setting("gat", 2, 256, "none", 0.7, False, 0.005, 5e-4),
    Setting("gat", 2, 256, "layer", 0.5, True, 0.005, 5e-4),
    Setting("gat", 3, 256, "batch", 0.5, True, 0.003, 5e-5),
    Setting("gat", 5, 256, "batch", 0.3, True, 0.003, 5e-5),
)


# F1 on validation nodes, the epoch, log posteriors of the test nodes, a temperature.
Found = tuple[float, int, Tensor, float]


class Sparse:
    """A constant sparse matrix on a device; its entries can be dropped out."""

    def __init__(self, matrix: sp.csr_array, device: str) -> None:
        matrix = sp.csr_array(matrix).astype(np.float32)
        matrix.sort_indices()
        numbers = sp.csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
        turned = sp.csr_array(numbers.T)
        self.shape = matrix.shape
        self.rows = [_on(part, device).int() for part in (matrix.indptr, matrix.indices)]
        self.turned = [_on(part, device).int() for part in (turned.indptr, turned.indices)]
        self.order = _on(turned.data, device)
        self.values = torch.from_numpy(matrix.data).to(device)

    def times(self, dense: Tensor, dropout: float = 0.0) -> Tensor:
        """Multiply by a dense matrix."""
        values = F.dropout(self.values, dropout) if dropout else self.values
        product: Tensor = _Product.apply(self, values, dense)  # type: ignore[no-untyped-call]
        return product


def _on(array: Any, device: str) -> Tensor:
    return torch.from_numpy(array.astype(np.int64)).to(device)


def _csr(rows: list[Tensor], values: Tensor, shape: tuple[int, ...]) -> Tensor:
    start, columns = rows
    return torch.sparse_csr_tensor(start, columns, values, shape, check_invariants=False)


class _Product(torch.autograd.Function):
    """Sparse times dense; its derivative multiplies by the transposed matrix."""

    @staticmethod
    def forward(ctx: Any, left: Sparse, values: Tensor, dense: Tensor) -> Tensor:
        ctx.left, ctx.values = left, values
        return _csr(left.rows, values, left.shape) @ dense

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        left, shape = ctx.left, ctx.left.shape[::-1]
        turned = _csr(left.turned, ctx.values[left.order], shape)
        return None, None, turned @ grad.contiguous()


class _Attended(torch.autograd.Function):
    """Sum over neighbours by shares that are learned; the shares' derivatives are products."""

    @staticmethod
    def forward(ctx: Any, world: World, share: Tensor, h: Tensor) -> Tensor:
        ctx.world = world
        ctx.save_for_backward(share, h)
        looped = world.scaled
        return _csr(looped.rows, share, looped.shape) @ h

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor]:
        (share, h), looped, grad = ctx.saved_tensors, ctx.world.scaled, grad.contiguous()
        source, target = ctx.world.edges
        turned = _csr(looped.turned, share[looped.order], looped.shape)
        own = (grad.index_select(0, target) * h.index_select(0, source)).sum(1)
        return None, own, turned @ grad


@dataclass(frozen=True, eq=False)
class World:
    """A graph on a device.

    Attributes:
        x: features.
        scaled: adjacency with self-loops, scaled by both degrees.
        mean: adjacency, scaled by the degree of its row.
        edges: sources and targets, with self-loops.
        y: classes.
        parts: positions of training nodes, of those held out and of test nodes.
        num_classes: of them.
    """

    x: Sparse
    scaled: Sparse
    mean: Sparse
    edges: Tensor
    y: Tensor
    parts: dict[str, Tensor]
    num_classes: int

    @classmethod
    def read(cls, file: Path, split: str, device: str) -> World:
        """Read what `bench tuned` exported."""
        with np.load(file) as found:
            got = dict(found)
        x = sp.csr_array((got["data"], got["indices"], got["indptr"]), tuple(got["shape"]))
        n, (a, b) = x.shape[0], got["edges"]
        ones = np.ones(2 * len(a), dtype=np.float32)
        plain = sp.csr_array((ones, (np.concatenate([a, b]), np.concatenate([b, a]))), (n, n))
        looped = sp.csr_array(plain + sp.eye_array(n, format="csr"))
        looped.sort_indices()
        root = sp.diags_array(1 / np.sqrt(looped.sum(axis=1)))
        share = sp.diags_array(1 / np.maximum(plain.sum(axis=1), 1))
        pairs = looped.tocoo()
        parts = {name: _on(got[f"{name}-{split}"], device) for name in PARTS}
        return cls(
            Sparse(x, device),
            Sparse(sp.csr_array(root @ looped @ root), device),
            Sparse(sp.csr_array(share @ plain), device),
            _on(np.stack([pairs.col, pairs.row]), device),
            _on(got["y"], device),
            parts,
            int(got["y"].max()) + 1,
        )


class Layer(nn.Module):
    """One step of message passing; the first takes the sparse features."""

    def __init__(self, world: World, setting: Setting, width: int) -> None:
        super().__init__()
        self.world, self.setting = world, setting
        out = setting.hidden
        own = setting.residual or setting.conv == "sage"
        self.weight = nn.Parameter(torch.empty(width, out * (2 if own else 1)))
        nn.init.xavier_uniform_(self.weight)
        self.bias = nn.Parameter(torch.zeros(out))
        if setting.conv == "gat":
            self.attention = nn.Parameter(torch.empty(2, HEADS, out // HEADS))
            nn.init.xavier_uniform_(self.attention)
        norms = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm, "none": nn.Identity}
        self.norm = norms[setting.norm](out)

    def forward(self, h: Tensor | None) -> Tensor:
        drop, world = self.setting.dropout, self.world
        if h is None:
            h = world.x.times(self.weight, drop if self.training else 0.0)
        else:
            h = F.dropout(h, drop, self.training) @ self.weight
        own = h[:, self.setting.hidden :]
        h = h[:, : self.setting.hidden].contiguous()
        if self.setting.conv == "gat":
            h = self._attended(h)
        else:
            h = (world.mean if self.setting.conv == "sage" else world.scaled).times(h)
        h = h + self.bias
        return F.relu(self.norm(h + own if own.shape[1] else h))

    def _attended(self, h: Tensor) -> Tensor:
        source, target = self.world.edges
        n, heads = len(h), h.view(len(h), HEADS, -1)
        says = (heads * self.attention[0]).sum(-1).index_select(0, source)
        hears = (heads * self.attention[1]).sum(-1).index_select(0, target)
        score = F.leaky_relu(says + hears, 0.2)
        top = torch.full((n, HEADS), -1e9, device=h.device)
        top = top.scatter_reduce(0, target[:, None].expand_as(score), score.detach(), "amax")
        power = (score - top.index_select(0, target)).exp()
        total = torch.zeros(n, HEADS, device=h.device).index_add(0, target, power)
        share = power / total.index_select(0, target)
        parts = [
            _Attended.apply(self.world, share[:, k].contiguous(), heads[:, k].contiguous())  # type: ignore[no-untyped-call]
            for k in range(HEADS)
        ]
        return torch.cat(parts, dim=1)


class Net(nn.Module):
    """Layers and a linear head."""

    def __init__(self, world: World, setting: Setting) -> None:
        super().__init__()
        widths = [world.x.shape[1]] + [setting.hidden] * (setting.layers - 1)
        self.layers = nn.ModuleList(Layer(world, setting, width) for width in widths)
        self.head = nn.Linear(setting.hidden, world.num_classes)
        self.dropout = setting.dropout

    def forward(self) -> Tensor:
        h: Tensor | None = None
        for layer in self.layers:
            h = layer(h)
        assert h is not None
        out: Tensor = self.head(F.dropout(h, self.dropout, self.training))
        return out


def trained(world: World, setting: Setting, seed: int, epochs: int | None = None) -> Found:
    """Train, and stop where validation nodes say so, or after so many epochs on all nodes.

    Returns: F1 on validation nodes, the epoch, log posteriors of the test nodes then, and the
    temperature that suits the validation nodes.
    """
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    device = str(world.y.device)
    net = Net(world, setting).to(device)
    adam = torch.optim.Adam(
        net.parameters(), lr=setting.lr, weight_decay=setting.weight_decay, fused=True
    )
    train, validation, test = (world.parts[name] for name in PARTS)
    learned = train if epochs is None else torch.cat([train, validation])
    best, chosen, said, kept = -1.0, 0, torch.zeros(0), torch.zeros(0)
    for epoch in range(1, (epochs or EPOCHS) + 1):
        net.train()
        adam.zero_grad(set_to_none=True)
        F.cross_entropy(net()[learned], world.y[learned]).backward()  # type: ignore[no-untyped-call]
        adam.step()
        if epoch % EVERY and epoch != epochs:
            continue
        if epochs is not None and epoch != epochs:
            continue
        net.eval()
        with torch.no_grad():
            logits = net()
        f1 = float((logits[validation].argmax(1) == world.y[validation]).float().mean())
        if f1 > best or epochs is not None:
            best, chosen, said, kept = f1, epoch, logits[test], logits[validation]
        if epoch - chosen > PATIENCE:
            break
    return best, chosen, said.log_softmax(1), _temperature(kept, world.y[validation])


def _temperature(logits: Tensor, labels: Tensor) -> float:
    """Return the temperature, of a fixed few, with the least log loss."""
    choices = np.geomspace(0.25, 4.0, 65)
    losses = [float(F.cross_entropy(logits / t, labels)) for t in choices]
    return float(choices[int(np.argmin(losses))])


@dataclass(frozen=True, order=True)
class Cell:
    """One setting on one split, or the chosen setting once more on all training nodes.

    Attributes:
        size: edges and nodes of the graph: small ones come first.
        file: the graph, as `bench tuned` exported it.
        split: which of its splits.
        number: of the setting in `GRID`.
        epochs: None, or for how many to train on all training nodes.
    """

    size: int
    file: Path
    split: str
    number: int
    epochs: int | None = None

    def kept(self, out: Path) -> Path:
        """The file, without its end, of what was found of this split."""
        return out / f"{self.file.stem}-{self.split}"


def measure(cell: Cell, device: str) -> tuple[dict[str, Any], NDArray[np.float16], float]:
    """Train one cell; return its row, log posteriors of the test nodes and a temperature."""
    world, setting = _world(cell.file, cell.split, device), GRID[cell.number]
    with np.load(cell.file) as found:
        seed = int(found[f"seed-{cell.split}"]) if f"seed-{cell.split}" in found else 0
    begun = time.perf_counter()
    f1, epoch, said, temperature = trained(world, setting, seed + cell.number, cell.epochs)
    right = said.argmax(1) == world.y[world.parts["test"]]
    row = asdict(setting) | {"validation": f1, "epochs": epoch, "test": float(right.float().mean())}
    row["seconds"] = time.perf_counter() - begun
    return row, said.clamp(min=-60).half().cpu().numpy(), temperature


@lru_cache(maxsize=1)
def _world(file: Path, split: str, device: str) -> World:
    return World.read(file, split, device)


def opened(file: Path) -> dict[str, Any]:
    """Read what was found of a split: its settings by number, and which is chosen."""
    if not file.exists():
        return {"whole": False, "chosen": None, "settings": {}, "scores": {}}
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def keep(cell: Cell, out: Path, row: Any, said: NDArray[np.float16], temperature: float) -> None:
    """Keep a cell's row, and what it says if it is the best of its split or its last."""
    file = Path(f"{cell.kept(out)}.json")
    found, arrays = opened(file), file.with_suffix(".npz")
    if cell.epochs is not None:
        found["whole"] = True
        before = dict(np.load(arrays)) if arrays.exists() else {}
        np.savez_compressed(arrays, **before, refitted=said)
    else:
        found["settings"][str(cell.number)] = row
        rows = {int(number): row for number, row in found["settings"].items() if row}
        best = max(rows, key=lambda number: (rows[number]["validation"], -number))
        if best == cell.number:
            found |= {"chosen": best, "scores": {}}
            np.savez_compressed(arrays, stopped=said, temperature=temperature)
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(found))
    beside.replace(file)
    print(file.stem, cell, row["validation"], f"{row['seconds']:.0f} s", flush=True)


def waiting(folder: Path, out: Path) -> list[Cell]:
    """Return the cells that can be trained now and were not: the small graphs' first."""
    cells = []
    for file in folder.glob("*.npz"):
        with np.load(file) as data:
            size, names = data["edges"].shape[1] + len(data["y"]), data.files
            again = "refit" not in names or bool(data["refit"])
        for split in (name.removeprefix("test-") for name in names if name[:5] == "test-"):
            first = Cell(size, file, split, 0)
            found = opened(Path(f"{first.kept(out)}.json"))
            missing = [n for n in range(len(GRID)) if str(n) not in found["settings"]]
            cells += [replace(first, number=number) for number in missing]
            if again and not missing and not found["whole"]:
                best = found["chosen"]
                epochs = found["settings"][str(best)]["epochs"]
                cells.append(replace(first, number=best, epochs=epochs))
    return sorted(cells, key=lambda cell: (cell.size, cell.split, -cell.number))


def main(folder: str, out: str, workers: str = "8") -> None:
    """Work through all cells of all splits, several at a time, keeping each when it is done."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data, place = Path(folder), Path(out)
    place.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    running: dict[Future[Any], Cell] = {}
    failed: set[Cell] = set()
    with ProcessPoolExecutor(int(workers), mp_context=context) as pool:
        while True:
            taken = {*running.values(), *failed}
            free = [cell for cell in waiting(data, place) if cell not in taken]
            for cell in free[: int(workers) - len(running)]:
                running[pool.submit(measure, cell, device)] = cell
            if not running:
                break
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                cell = running.pop(done)
                try:
                    keep(cell, place, *done.result())
                except RuntimeError as error:  # Memory of the device, say: others go on.
                    failed.add(cell)
                    print(cell, "failed:", error, flush=True)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
