"""grapheraser reshard: fit what is left of a run afresh, in another number of shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.options import ExecutorOption
from grapheraser.cli.output import JsonOption, print_json
from grapheraser.cli.own import TrustOption, own_parts

NAME = "reshard"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    shards: Annotated[int, typer.Option(help="The new number of shards.")],
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Partition what is left of a run anew and train all shards; the receipts go on."""
    from grapheraser.eraser import GraphEraser
    from grapheraser.reports.wording import duration
    from grapheraser.store import locked

    with locked(path) as lock:
        eraser = GraphEraser.load(path, executor=executor, **own_parts(path, trust))
        receipt = eraser.reshard(shards)
        eraser.save(path, lock=lock)
    if json:
        print_json({"receipt": receipt.to_dict(), "digest": receipt.digest})
        return
    print(f"shards      {len(eraser.shards_)}")
    print(f"took        {duration(receipt.timings['total'])}")
    print(f"statement   {receipt.statement}")
    print(f"receipt     {receipt.sequence}, {receipt.digest}")
