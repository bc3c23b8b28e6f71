"""The ledger of a run: all of its finished cells as one small file.

    python -m grapheraser_lab.framework.ledger pack runs/paper lab/results/cells/paper.jsonl.xz
    python -m grapheraser_lab.framework.ledger unpack lab/results/cells/paper.jsonl.xz runs/paper

`publish` packs it beside the reports. Unpacked, the reports can be made again without measuring
anything, and a run that is resumed measures only what is missing. A cell that says ``restored`` was
put together from the tidy data of an earlier report and holds no more than that data did.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

from grapheraser.store.files import make_folder, read_result, write_result
from grapheraser_lab.framework.cell import Result


def pack(run: Path, ledger: Path) -> int:
    """Write all cells of a run, in the order of their digests; return how many."""
    files = sorted((run / "cells").glob("*.json"))
    make_folder(ledger.parent)
    with lzma.open(ledger, "wt", encoding="utf-8", preset=9) as out:
        for file in files:
            cell = read_result(file)
            cell.pop("digest", None)
            out.write(json.dumps(cell, sort_keys=True, separators=(",", ":")) + "\n")
    return len(files)


def unpack(ledger: Path, run: Path) -> int:
    """Write the cells of a ledger into a run; what is there already stays. Return how many."""
    make_folder(run / "cells")
    count = 0
    with lzma.open(ledger, "rt", encoding="utf-8") as lines:
        for line in lines:
            result = Result.from_dict(json.loads(line))
            file = run / "cells" / f"{result.cell.digest}.json"
            if not file.exists():
                write_result(file, result.to_dict())
            count += 1
    return count


if __name__ == "__main__":
    _verb, _from, _to = sys.argv[1:4]
    print({"pack": pack, "unpack": unpack}[_verb](Path(_from), Path(_to)), "cells")
