"""Run the demonstration and write its picture and its output into the README.

python -m tools.pictures
"""

from __future__ import annotations

import re
from pathlib import Path

from grapheraser.cli.demo import told
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.demo.page import draw_around, draw_shards, draw_times
from grapheraser.demo.story import DemoResult, run_demo
from grapheraser.nodes import GraphEraser
from grapheraser.reports.figures.drawing import beside
from grapheraser.reports.pages.render import standalone

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "demo.svg"
DATASET = "demo-large"

_OUTPUT = re.compile(r"(<!-- output: demo -->).*?(<!-- end -->)", re.S)


def picture(result: DemoResult) -> str:
    """The shards, what is left around the forgotten node, and the times, as an SVG file."""
    scene, kept = result.scene, len(result.sizes) - len(result.scene.retrained)
    drawings = {
        f"Node {scene.node} goes: {kept} of {len(result.sizes)} shards untouched": draw_shards(
            scene, result.sizes
        ),
        f"Predictions around it, after; {scene.changed} changed": draw_around(scene, is_after=True),
        "Time, beside its rivals": draw_times(result),
    }
    return standalone(beside(drawings))


def with_output(readme: str, result: DemoResult) -> str:
    """The README with what the demonstration printed."""
    verdict = "bit-identical" if result.proof.is_identical else "NOT identical"
    values = f"({result.proof.verification.values:,} values)"
    lines = "\n".join([*told(result), f"verified: {verdict} {values}"])
    return _OUTPUT.sub(lambda m: f"{m[1]}\n\n```text\n{lines}\n```\n\n{m[2]}", readme)


def main() -> None:
    """Run it as `grapheraser demo` does, and write both."""
    eraser = GraphEraser(num_shards=default_shards(DATASET))
    result = run_demo(load_dataset(DATASET), eraser, say=print)
    PICTURE.write_text(picture(result))
    README.write_text(with_output(README.read_text(), result))


if __name__ == "__main__":
    main()
