"""The demonstration as one HTML page that needs nothing from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapheraser.demo.pictures import (
    draw_around,
    draw_f1,
    draw_moves,
    draw_shard,
    draw_shards,
    draw_times,
)
from grapheraser.demo.scene import AGGREGATION
from grapheraser.demo.story import NO_PYG, PYG_EPOCHS
from grapheraser.reports.pages.render import drawn, render
from grapheraser.reports.tables import Table
from grapheraser.reports.wording import contents, duration, listed, plural

if TYPE_CHECKING:
    from grapheraser.demo.scene import Scene
    from grapheraser.demo.story import DemoResult

_SHORT = 8  # hexadecimal digits of a digest: enough to tell it from others


def demo_page(result: DemoResult, command: str = "") -> str:
    """The page; ``command`` checks the receipt of the node in the pictures."""
    scene, proof = result.scene, result.proof
    return render(
        "demo",
        about=_about(result),
        proof=proof,
        part=proof.part,
        scene=scene,
        facts=_facts(result),
        receipts=result.receipts,
        num_shards=len(result.sizes),
        num_kept=len(result.sizes) - len(scene.retrained),
        num_test=len(result.graph.test_nodes),
        retrained=listed([f"shard {shard}" for shard in scene.retrained]) or "no shard",
        shards=[
            drawn(draw_shards(scene, result.sizes), "Every shard, by its number."),
            drawn(draw_shard(scene), _inside(scene)),
        ],
        around=_around(scene),
        surroundings=[
            drawn(draw_around(scene, is_after=False), f"Before: node {scene.node} in the middle."),
            drawn(draw_around(scene, is_after=True), "After: the node and its edges are gone."),
        ],
        moves=drawn(draw_moves(scene), "Its neighbours: what the model says of them."),
        digests=_digests(result),
        command=command,
        times=drawn(draw_times(result), _measured(result)),
        utility=drawn(
            draw_f1(result),
            f"Bars begin at 0. From scratch: one model, no shards. What decides: {result.decides}.",
        ),
        answered=_receipts(result),
        setting=f"{result.eraser}, engine {result.eraser.engine_}",
    )


def _about(result: DemoResult) -> str:
    graph = result.graph
    return (
        f"{graph.name}: {plural(graph.num_nodes, 'node')}, {plural(graph.num_edges, 'edge')}, "
        f"{graph.num_classes} classes, {plural(graph.num_features, 'feature')}; "
        f"{plural(len(result.sizes), 'shard')} by the partition method {result.eraser.partition}"
    )


def _facts(result: DemoResult) -> list[tuple[str, str]]:
    kept = len(result.sizes) - len(result.scene.retrained)
    rivals = {"retrain": "with the same engine", "pyg": "with plain PyG, scaled"}
    return [
        (duration(result.seconds["node"]), "to forget a node, call to receipt, median"),
        *(
            (f"{result.times(name):,.0f}x", f"less than retraining {how}")
            for name, how in rivals.items()
            if name in result.rivals
        ),
        (f"{kept} of {len(result.sizes)}", "shards not touched by the first request"),
        (f"{result.f1['after']:.4f}", f"F1 after; {result.f1['before']:.4f} before"),
    ]


def _inside(scene: Scene) -> str:
    return (
        f"Shard {scene.shard}: {plural(len(scene.members), 'training node')} and the "
        f"{plural(len(scene.inside), 'edge')} between them, all that its model ever saw."
    )


def _around(scene: Scene) -> str:
    drawn_nodes = plural(len(scene.around), "node")
    some = f" ({drawn_nodes} of them drawn)" if scene.num_around > len(scene.around) else ""
    changed = "none" if not scene.changed else f"{scene.changed}"
    return (
        f"Node {scene.node} has {plural(len(scene.near), 'neighbour')}, and "
        f"{plural(scene.num_around, 'node')} lie within two steps{some}. Of the "
        f"{drawn_nodes} drawn, {changed} got another class; no probability moved by more than "
        f"{scene.largest_move:.3f}. The class of node {scene.node} itself was {scene.label}; the "
        "model no longer answers for it."
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


def _digests(result: DemoResult) -> Table:
    """The shard of the node, one that no request touched, and what combines all."""
    scene, proof = result.scene, result.proof
    touched = {shard for receipt in result.receipts for shard in receipt.retrained}
    kept = [name for name in scene.digests_before if name not in {f"shard {s}" for s in touched}]
    rows = []
    for name in (f"shard {scene.shard}", *kept[:1], AGGREGATION):
        columns = (proof.unlearned, proof.afresh, scene.digests_before)
        after, without, before = (column.get(name, "none") for column in columns)
        verdict = "equal" if after == without else "DIFFERENT"
        rows.append((name, after[:_SHORT], without[:_SHORT], verdict, before[:_SHORT]))
    header = ("SHA-256 of", "after", "fitted without", "", "before")
    return Table("", header, tuple(dict.fromkeys(rows)))


def _receipts(result: DemoResult) -> Table:
    rows = [
        (
            str(receipt.sequence),
            contents(receipt.counts),
            ", ".join(map(str, receipt.retrained)) or "none",
            duration(receipt.timings["total"]),
            receipt.digest[:_SHORT],
        )
        for receipt in result.receipts
    ]
    return Table("", ("#", "forgotten", "shards retrained", "time", "receipt"), tuple(rows))
