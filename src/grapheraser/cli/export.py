"""grapheraser export: write a run as files for plain PyG and NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.cli.own import TrustOption, own_parts

NAME = "export"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")],
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Write shards as ONNX files too; needs the extra onnx.")
    ] = False,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Write a run's weights, arrays and model card, for use without this package."""
    from grapheraser.eraser import GraphEraser

    eraser = GraphEraser.load(path, **own_parts(path, trust))
    eraser.export(out, onnx=onnx)
    if json:
        print_json({"run": str(path), "export": str(out), "shards": list(eraser.shards_)})
        return
    say("note: an export can't forget; after a request, export again and delete the old one")
    print(f"exported  {out}")
    print(f"card      {out / 'README.md'}")
