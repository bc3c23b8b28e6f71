"""grapheraser warmup: compile kernels ahead of time, for container images."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json
from grapheraser.reports.wording import duration, plural

NAME = "warmup"
_LINKS = "links"


def run(
    models: Annotated[
        str, typer.Option(help="Models, e.g. gcn,gat, and links for link runs; default all.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Compile what fitting, predicting and unlearning on the CPU will use, and keep it on disk."""
    from grapheraser.eraser import GraphEraser
    from grapheraser.eraser.warmup import BUILT_IN, warm_up_models
    from grapheraser.kernels.compiled import compilations
    from grapheraser.links.warmup import warm_up_links

    names = models.split(",") if models else [*BUILT_IN, _LINKS]
    started, before = time.perf_counter(), len(compilations())
    if _LINKS in names:
        warm_up_links()
    own = [name for name in names if name != _LINKS]
    done = warm_up_models(own, GraphEraser().get_params())
    fresh, seconds = len(compilations()) - before, time.perf_counter() - started
    if json:
        print_json(
            {
                "models": names,
                "kernels": fresh,
                "seconds": seconds,
                "folders": [str(folder) for folder in done.folders],
            }
        )
        return
    print(f"models    {', '.join(names)}")
    print(f"compiled  {plural(fresh, 'kernel')} in {duration(seconds)}")
    for folder in done.folders:
        print(f"kept in   {folder}")
