"""grapheraser warmup: compile kernels ahead of time, for container images."""

from __future__ import annotations

import time

from grapheraser.cli.output import answered, print_line
from grapheraser.reports.wording import duration, plural

_LINKS, _RECOMMENDATION = "links", "recommendation"


def run(
    models: str = "",
) -> None:
    """Compile what fitting, predicting and unlearning on the CPU will use, and keep it on disk.

    Options:
        models: Models, e.g. gcn,gat, links and recommendation; default all.
    """
    from grapheraser.kernels.compiled import compilations
    from grapheraser.links.warmup import warm_up_links
    from grapheraser.nodes import GraphEraser
    from grapheraser.nodes.warmup import BUILT_IN, warm_up_models
    from grapheraser.recommendation.warmup import warm_up_recommendation

    names = models.split(",") if models else [*BUILT_IN, _LINKS, _RECOMMENDATION]
    started, before = time.perf_counter(), len(compilations())
    if _LINKS in names:
        warm_up_links()
    if _RECOMMENDATION in names:
        warm_up_recommendation()
    own = [name for name in names if name not in (_LINKS, _RECOMMENDATION)]
    done = warm_up_models(own, GraphEraser().get_params())
    fresh, seconds = len(compilations()) - before, time.perf_counter() - started
    folders = [str(folder) for folder in done.folders]
    if answered({"models": names, "kernels": fresh, "seconds": seconds, "folders": folders}):
        return
    print_line(f"models    {', '.join(names)}")
    print_line(f"compiled  {plural(fresh, 'kernel')} in {duration(seconds)}")
    for folder in folders:
        print_line(f"kept in   {folder}")
