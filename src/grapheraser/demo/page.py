"""The demonstration as one HTML page that needs nothing from anywhere."""

from __future__ import annotations

from html import escape
from string import Template
from typing import TYPE_CHECKING

from grapheraser.demo.figures import draw_forgotten, draw_times, draw_utility
from grapheraser.errors import MissingExtraError
from grapheraser.reports.figures.canvas import as_img

if TYPE_CHECKING:
    from grapheraser.demo.story import DemoResult

_PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GraphEraser: the demonstration</title>
<style>
  body { font: 16px/1.55 system-ui, sans-serif; color: #1f2933; background: #fff;
         max-width: 60rem; margin: 2.5rem auto; padding: 0 1.2rem; }
  h1 { font-size: 1.7rem; margin-bottom: .2rem; }
  h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
  img { max-width: 100%; height: auto; display: block; }
  .verdict { display: inline-block; padding: .35rem .8rem; border-radius: .4rem;
             background: $colour; color: #fff; font-weight: 600; }
  .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr)); gap: 1.5rem; }
  table { border-collapse: collapse; }
  td, th { padding: .25rem 1.2rem .25rem 0; text-align: left; font-variant-numeric: tabular-nums; }
  th { font-weight: 600; border-bottom: 1px solid #cbd2d9; }
  code { background: #f0f4f8; padding: .1rem .3rem; border-radius: .2rem; overflow-wrap: anywhere; }
  .quiet { color: #616e7c; }
</style>
<h1>GraphEraser: the demonstration</h1>
<p class="quiet">$graph</p>
<p class="verdict">$verdict</p>
<p>$story</p>
<h2>The training graph, cut into $num_shards shards</h2>
$shards
<div class="pair">
<section><h2>What it costs in quality</h2>$utility</section>
<section><h2>What it takes in time</h2>$times</section>
</div>
<h2>The receipts</h2>
<table><tr><th>#</th><th>forgotten</th><th>shards retrained</th><th>time</th><th>receipt</th></tr>
$receipts</table>
<p>$statement</p>
</html>
""")


def demo_page(result: DemoResult) -> str:
    """The page; without the ``plots`` extra it says so where the pictures would be."""
    verification, receipts = result.verification, result.receipts
    try:
        pictures = {
            "shards": as_img(draw_forgotten(result), "the training graph coloured by shard"),
            "utility": as_img(draw_utility(result), "F1 before and after"),
            "times": as_img(draw_times(result), "time per request against retraining"),
        }
    except MissingExtraError as error:
        note = (
            f'<p class="quiet">{escape(error.message)} <code>{escape(error.hint or "")}</code></p>'
        )
        pictures = {"shards": note, "utility": "", "times": ""}
    rows = "".join(
        f"<tr><td>{r.sequence}</td><td>{escape(_what(r.counts))}</td>"
        f"<td>{', '.join(map(str, r.retrained)) or 'none'}</td>"
        f"<td>{r.timings['total'] * 1000:.1f} ms</td><td><code>{r.digest[:16]}</code></td></tr>\n"
        for r in receipts
    )
    story = (
        f"{len(receipts)} requests were carried out one by one, each by training again only the "
        f"shards that had seen the data: {result.seconds['request'] * 1000:.1f} ms on average, "
        f"{result.speedup:.0f} times less than training from scratch with plain PyG "
        f"({result.seconds['pyg'] * 1000:.0f} ms; {result.seconds['retrain'] * 1000:.0f} ms with "
        "the engine that the shards use). Then everything was trained again from the "
        f"remaining data alone, and {verification.values:,} numbers were compared."
    )
    return _PAGE.substitute(
        graph=escape(repr(result.graph)),
        colour="#2b8a3e" if verification.identical else "#c92a2a",
        verdict="verified: bit-identical" if verification.identical else "NOT identical",
        story=escape(story),
        num_shards=len(result.eraser.shards_),
        receipts=rows,
        statement=escape(f"{receipts[-1].statement}: {receipts[-1].exactness['reason']}"),
        **pictures,
    )


def _what(counts: dict[str, int]) -> str:
    names = {"nodes": "node", "edges": "edge", "features": "feature row"}
    return ", ".join(f"{counts[key]} {name}" for key, name in names.items() if counts[key])
