"""The demonstration as one HTML page that needs nothing from anywhere, and its drawings.

They show one forgotten node and its shard; times beside those of rivals, and F1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import cos, floor, log10, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from grapheraser.demo.scene import AGGREGATION, Scene
from grapheraser.demo.story import NO_PYG, PYG_EPOCHS, DemoResult
from grapheraser.reports.figures.drawing import WIDTH, Drawing
from grapheraser.reports.pages.render import drawn, render
from grapheraser.reports.wording import duration, listed, plural

Places = dict[int, tuple[float, float]]

_GOLDEN = pi * (3 - sqrt(5))  # the angle between two seeds of a sunflower
_FEW_EDGES = 40  # more of them would hide the nodes
_HEIGHT, _NEAR, _FAR = 320.0, 82.0, 142.0


def demo_page(result: DemoResult, command: str = "") -> str:
    """The page; ``command`` checks the receipt of the node in the pictures."""
    scene, proof = result.scene, result.proof
    retrained = {shard for receipt in result.receipts for shard in receipt.retrained}
    touched = {f"shard {shard}" for shard in retrained}
    kept = [name for name in scene.digests_before if name not in touched]
    inside = (
        f"Shard {scene.shard}: {plural(len(scene.members), 'training node')} and the "
        f"{plural(len(scene.inside), 'edge')} between them, all that its model ever saw."
    )
    return render(
        "demo",
        result=result,
        graph=result.graph,
        proof=proof,
        part=proof.part,
        scene=scene,
        receipts=result.receipts,
        num_shards=len(result.sizes),
        num_kept=len(result.sizes) - len(scene.retrained),
        num_test=len(result.graph.test_nodes),
        retrained=listed([f"shard {shard}" for shard in scene.retrained]) or "no shard",
        shards=[
            drawn(draw_shards(scene, result.sizes), "Every shard, by its number."),
            drawn(draw_shard(scene), inside),
        ],
        surroundings=[
            drawn(draw_around(scene, is_after=False), f"Before: node {scene.node} in the middle."),
            drawn(draw_around(scene, is_after=True), "After: the node and its edges are gone."),
        ],
        moves=drawn(draw_moves(scene), "Its neighbours: what the model says of them."),
        # The shard of the node, one that no request touched, and what combines all.
        shown=list(dict.fromkeys([f"shard {scene.shard}", *kept[:1], AGGREGATION])),
        command=command,
        times=drawn(draw_times(result), _measured(result)),
        utility=drawn(
            draw_f1(result),
            f"Bars begin at 0. From scratch: one model, no shards. What decides: {result.decides}.",
        ),
    )


def _measured(result: DemoResult) -> str:
    seconds = result.seconds
    each = f"{duration(min(result.per_request))} to {duration(max(result.per_request))}"
    half = len(result.receipts) // 2
    pyg = f"{PYG_EPOCHS} epochs measured and scaled to all" if "pyg" in result.rivals else NO_PYG
    return (
        f"Logarithmic, measured in this run. Nodes and edges: medians of {half} each; single "
        f"requests took {each}. Plain PyG: {pyg}. The first fit of all shards took "
        f"{duration(seconds['fit'])}, the replay {duration(seconds['verify'])}."
    )


def draw_shards(scene: Scene, sizes: NDArray[np.int64]) -> Drawing:
    """A tile for every shard: the retrained ones are lit, the others kept their bytes."""
    retrained = set(scene.retrained)
    columns = 10 if len(sizes) > 20 else 5
    pitch = WIDTH / columns
    rows = -(-len(sizes) // columns)
    kept = len(sizes) - len(retrained)
    about = (
        f"{plural(len(sizes), 'shard')}; retrained: {_names(retrained)}. "
        f"{plural(kept, 'shard')} kept every byte."
    )
    drawing = Drawing(rows * 30.0 + 30, about)
    for shard, size in enumerate(sizes.tolist()):
        x, y = pitch * (shard % columns), 30.0 * (shard // columns)
        is_lit = shard in retrained
        words = "retrained" if is_lit else "same bytes as before"
        title = f"shard {shard}, {plural(size, 'node')}: {words}"
        drawing.rect(x + 2, y + 2, pitch - 4, 26, "lit" if is_lit else "kept", title)
        drawing.text(x + pitch / 2, y + 19, str(shard), "on-lit" if is_lit else "quiet", "middle")
    y = rows * 30.0 + 20
    drawing.rect(2, y - 10, 12, 12, "lit")
    drawing.text(20, y, f"retrained: {len(retrained)}", "small")
    drawing.rect(130, y - 10, 12, 12, "kept")
    drawing.text(148, y, f"not touched, same digest: {kept}", "small")
    return drawing


def draw_shard(scene: Scene) -> Drawing:
    """The nodes of the lit shard as a disc, and its edges; if many, those of the node alone."""
    about = (
        f"Shard {scene.shard} with {plural(len(scene.members), 'node')} and "
        f"{plural(len(scene.inside), 'edge')} between them; node {scene.node} is crossed out."
    )
    drawing = Drawing(270.0, about)
    places = _disc(scene.members.tolist(), WIDTH / 2, 125.0, 116.0)
    for u, v in scene.inside.tolist():
        gone = scene.node in (u, v)
        if gone or len(scene.inside) <= _FEW_EDGES:
            drawing.line(*places[u], *places[v], "edge gone" if gone else "edge lit")
    radius = min(5.0, 80.0 / sqrt(len(places)))
    for node, (x, y) in places.items():
        if node != scene.node:
            drawing.circle(x, y, radius, "lit", f"node {node}")
    x, y = places[scene.node]
    drawing.circle(x, y, 8, "hole", f"node {scene.node}, forgotten")
    drawing.cross(x, y, 5, "cross")
    drawing.line(x + 9, y, WIDTH - 66, 252, "leader")
    drawing.text(WIDTH, 262, f"node {scene.node}", "small", "end")
    return drawing


def draw_around(scene: Scene, *, is_after: bool) -> Drawing:
    """The node's surroundings with the class that is predicted for each, before or after."""
    posteriors = scene.after if is_after else scene.before
    classes = dict(zip(scene.around.tolist(), posteriors.argmax(axis=1).tolist(), strict=True))
    earlier = dict(zip(scene.around.tolist(), scene.before.argmax(axis=1).tolist(), strict=True))
    changed = {node for node in classes if classes[node] != earlier[node]}
    places = _rings(scene)
    drawing = Drawing(_HEIGHT, _about(scene, classes, changed, is_after=is_after))
    for u, v in scene.edges.tolist():
        touches = scene.node in (u, v)
        if not (touches and is_after):
            both_lit = all(scene.shards.get(end) == scene.shard for end in (u, v))
            drawing.line(*places[u], *places[v], "edge lit" if both_lit else "edge")
    for node, label in classes.items():
        x, y = places[node]
        radius = 13.0 if node in scene.near else 9.0
        where = scene.shards.get(node)
        title = (
            f"node {node}, {'in no shard' if where is None else f'shard {where}'}: class {label}"
        )
        kind = f"node class-{label % 8}" + (" changed" if node in changed else "")
        if where is None:
            drawing.rect(x - radius, y - radius, 2 * radius, 2 * radius, kind, title)
        else:
            drawing.circle(x, y, radius, kind, title)
        drawing.text(x, y + 4.5, str(label), "on-node", "middle")
    _draw_centre(drawing, scene, is_after=is_after)
    return drawing


def _draw_centre(drawing: Drawing, scene: Scene, *, is_after: bool) -> None:
    x, y = WIDTH / 2, _HEIGHT / 2
    if is_after:
        drawing.circle(x, y, 16, "hole", f"node {scene.node}, forgotten")
        drawing.cross(x, y, 6, "cross")
        return
    label = int(scene.own.argmax())
    drawing.circle(x, y, 20, "ring")
    drawing.circle(x, y, 16, f"node class-{label % 8}", f"node {scene.node}: class {label}")
    drawing.text(x, y + 5, str(label), "on-node", "middle")


def _about(scene: Scene, classes: dict[int, int], changed: set[int], *, is_after: bool) -> str:
    near = ", ".join(str(classes[node]) for node in scene.near.tolist())
    if not is_after:
        return (
            f"Before: node {scene.node} with the predicted class {int(scene.own.argmax())}; "
            f"those of its neighbours are {near}."
        )
    return (
        f"After: node {scene.node} and its edges are gone; the predicted classes of the nodes that "
        f"were its neighbours are {near}. {plural(len(changed), 'node')} drawn here changed class."
    )


def draw_moves(scene: Scene) -> Drawing:
    """For every neighbour the probability of its likeliest class, before and after."""
    rows = len(scene.near)
    drawing = Drawing(rows * 28.0 + 62, _moves_in_words(scene))
    left, right, top = 92.0, WIDTH - 12, 34.0
    drawing.circle(left + 6, 10, 5, "was")
    drawing.text(left + 16, 14, "before", "small")
    drawing.circle(left + 78, 10, 5, "is")
    drawing.text(left + 88, 14, "after", "small")
    for share in (0.0, 0.5, 1.0):
        x = left + share * (right - left)
        drawing.line(x, top - 8, x, top + rows * 28 - 8, "grid")
        anchor = "end" if share == 1 else "middle"
        drawing.text(x, top + rows * 28 + 10, f"{share:g}", "small quiet", anchor)
    for row, (node, before, after) in enumerate(
        zip(scene.near.tolist(), scene.before, scene.after, strict=False)
    ):
        y, label = top + row * 28 + 6, int(before.argmax())
        old, new = (left + float(p[label]) * (right - left) for p in (before, after))
        drawing.text(0, y + 4, f"node {node}", "small")
        drawing.line(old, y, new, y, "move")
        drawing.circle(old, y, 5.5, "was", f"before: class {label} with {before[label]:.3f}")
        drawing.circle(new, y, 3.5, "is", f"after: class {label} with {after[label]:.3f}")
    words = "probability of the class that was likeliest"
    drawing.text(right, top + rows * 28 + 25, words, "small quiet", "end")
    return drawing


def _moves_in_words(scene: Scene) -> str:
    moves = [
        f"node {node} from {before.max():.2f} to {after[before.argmax()]:.2f}"
        for node, before, after in zip(scene.near.tolist(), scene.before, scene.after, strict=False)
    ]
    return f"Probability of the class that was likeliest, before and after: {'; '.join(moves)}."


def _names(shards: set[int]) -> str:
    return ", ".join(f"shard {shard}" for shard in sorted(shards)) or "none"


def _disc(nodes: list[int], x: float, y: float, radius: float) -> Places:
    """Places evenly over a disc, as seeds in a sunflower."""
    found = {}
    for number, node in enumerate(nodes):
        away = radius * sqrt((number + 0.5) / len(nodes))
        found[node] = (x + away * cos(number * _GOLDEN), y + away * sin(number * _GOLDEN))
    return found


def _rings(scene: Scene) -> Places:
    """The node in the middle, neighbours in a ring, and theirs behind them in another."""
    x, y = WIDTH / 2, _HEIGHT / 2
    places = {scene.node: (x, y)}
    # Each neighbour gets room for those behind it.
    behind = [scene.far[scene.parents == parent].tolist() for parent in scene.near]
    room = np.array([1.0 + max(0, len(others) - 1) * 0.9 for others in behind])
    ends = np.concatenate([[0.0], np.cumsum(room)]) / max(room.sum(), 1.0) * 2 * pi - pi / 2
    for number, (node, others) in enumerate(zip(scene.near.tolist(), behind, strict=True)):
        low, high = ends[number], ends[number + 1]
        middle = (low + high) / 2
        places[node] = (x + _NEAR * cos(middle), y + _NEAR * sin(middle))
        for place, other in enumerate(others):
            angle = low + (high - low) * (place + 0.5) / len(others)
            places[other] = (x + _FAR * cos(angle), y + _FAR * sin(angle))
    return places


_ROW = 46.0
_RIVALS = {
    "retrain": "retrain one model, same engine",
    "afresh": "fit all shards afresh, same engine",
    "pyg": "retrain one model, plain PyG, scaled",
}


def draw_times(result: DemoResult) -> Drawing:
    """A request beside retraining everything, on a scale of powers of ten."""
    seconds = result.seconds
    found = [
        ("forget a node", seconds["node"], "lit"),
        ("forget an edge", seconds["edge"], "lit"),
        *((_RIVALS[name], seconds[name], "rival") for name in result.rivals),
    ]
    power = least = 10.0 ** floor(log10(min(value for _, value, _ in found)))
    most = max(value for _, value, _ in found) * 1.05
    words = "; ".join(f"{name}: {duration(value)}" for name, value, _ in found)
    span = (WIDTH - 4) / log10(most / least)
    ticks = []
    while power <= most:
        name = f"{power:g} s" if power >= 1 else f"{1000 * power:g} ms"
        ticks.append((log10(power / least) * span, name, "start" if power == least else "middle"))
        power *= 10
    bars = []
    for name, value, kind in found:
        times = f", {value / seconds['node']:,.0f}x" if kind == "rival" else ""
        bars.append((name, log10(value / least) * span, kind, duration(value) + times))
    return _bars(f"Seconds on a logarithmic scale. {words}.", ticks, bars)


def draw_f1(result: DemoResult) -> Drawing:
    """Micro F1 before, after, and of one model for the whole graph; bars begin at nought."""
    found = [
        ("shards, before", result.f1["before"], "lit"),
        ("shards, after", result.f1["after"], "lit"),
        ("one model from scratch, before", result.f1["scratch"], "rival"),
        ("one model from scratch, after", result.f1["retrained"], "rival"),
    ]
    words = "; ".join(f"{name}: {value:.4f}" for name, value, _ in found)
    anchors = {0.0: "start", 0.5: "middle", 1.0: "end"}
    ticks = [(at * (WIDTH - 1) + 0.5, f"{at:g}", anchor) for at, anchor in anchors.items()]
    bars = [(name, value * WIDTH, kind, f"{value:.4f}") for name, value, kind in found]
    return _bars(f"Micro F1 on the test nodes. {words}.", ticks, bars)


def _bars(
    about: str,
    ticks: Iterable[tuple[float, str, str]],
    bars: Sequence[tuple[str, float, str, str]],
) -> Drawing:
    """Draw bars with their names and figures, over ticks of a scale."""
    bottom = len(bars) * _ROW
    drawing = Drawing(bottom + 24, about)
    for x, words, anchor in ticks:
        drawing.line(x, 4, x, bottom, "grid")
        drawing.text(x, bottom + 16, words, "small quiet", anchor)
    for row, (name, length, kind, figure) in enumerate(bars):
        y = row * _ROW
        drawing.rect(0, y + 22, max(3.0, length), 16, kind)
        drawing.text(0, y + 16, name, "small")
        drawing.text(WIDTH, y + 16, figure, "small strong", "end")
    return drawing
