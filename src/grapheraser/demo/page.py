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
from grapheraser.reports.wording import duration, listed, plural

if TYPE_CHECKING:
    from grapheraser.demo.story import DemoResult


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
