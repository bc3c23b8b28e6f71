"""The demonstration as one HTML page that needs nothing from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapheraser.demo.figures import draw_forgotten, draw_times, draw_utility
from grapheraser.reports.pages.render import picture, render

if TYPE_CHECKING:
    from grapheraser.demo.story import DemoResult


def demo_page(result: DemoResult) -> str:
    """The page; without the extra ``plots`` it says what to install where pictures would be."""
    return render(
        "demo",
        graph=repr(result.graph),
        identical=result.verification.identical,
        values=result.verification.values,
        receipts=result.receipts,
        seconds=result.seconds,
        speedup=result.speedup,
        num_shards=len(result.eraser.shards_),
        shards=picture(lambda: draw_forgotten(result), "the training graph coloured by shard"),
        utility=picture(lambda: draw_utility(result), "F1 before and after"),
        times=picture(lambda: draw_times(result), "time of a request against retraining"),
    )
