"""grapheraser warmup: compile kernels ahead of time, for container images."""

from __future__ import annotations

from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json
from grapheraser.reports.wording import duration, plural

NAME = "warmup"


def run(
    models: Annotated[str, typer.Option(help="Models, e.g. gcn,gat; default all.")] = "",
    json: JsonOption = False,
) -> None:
    """Compile what fitting, predicting and unlearning on the CPU will use, and keep it on disk."""
    from grapheraser.eraser import GraphEraser
    from grapheraser.eraser.warmup import BUILT_IN, warm_up_models

    names = models.split(",") if models else BUILT_IN
    done = warm_up_models(names, GraphEraser().get_params())
    if json:
        print_json(
            {
                "models": list(done.models),
                "kernels": done.kernels,
                "seconds": done.seconds,
                "folders": [str(folder) for folder in done.folders],
            }
        )
        return
    print(f"models    {', '.join(done.models)}")
    print(f"compiled  {plural(done.kernels, 'kernel')} in {duration(done.seconds)}")
    for folder in done.folders:
        print(f"kept in   {folder}")
