"""The erasures of a day in one batch, for cron, a systemd timer or Airflow.

    python examples/batch.py runs/people erasures receipts

    15 2 * * *  cd /srv/graph && python batch.py runs/people erasures receipts    # cron

    erase = BashOperator(task_id="erase", bash_command="python batch.py ...")     # Airflow

Others put files of node ids, one on a line, into the folder `erasures`. All of them are forgotten
in one request; each gets their part of the receipt, the run is saved, and the files are removed.
Ids that are gone already are skipped, so it may be run again after it was stopped half way. One
process at a time; for more, or for answers meanwhile, there is `grapheraser serve`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grapheraser as ge


def erase(run: Path, inbox: Path, receipts: Path) -> int:
    """Forget all that the files name; return how many nodes went."""
    files = sorted(inbox.glob("*.txt"))
    asked = {line.strip() for file in files for line in file.read_text().splitlines()} - {""}
    eraser = ge.GraphEraser.load(run)
    given = eraser.graph_.ids_of(sorted(asked) if eraser.graph_.named else sorted(map(int, asked)))
    there = given[eraser.graph_.contains(given)]
    if len(there):
        receipt = eraser.unlearn(ge.Nodes(there))
        receipts.mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(receipt.parts):  # before the save: parts can't be made later
            name = f"{receipt.sequence}-{number}.json"
            (receipts / name).write_text(part.to_json())
        eraser.save(run)
    for file in files:
        file.unlink()
    return len(there)


if __name__ == "__main__":
    print(f"{erase(*map(Path, sys.argv[1:4]))} nodes forgotten")
