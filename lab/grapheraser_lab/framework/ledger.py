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


def pack(run: Path, ledger: Path, beside: Path | None = None) -> int:
    """Write the cells of a run, in the order of their digests; return how many.

    Those that the ledger ``beside`` it holds stay there alone.
    """
    known = set() if beside is None else {result.cell.digest for result in _read(beside)}
    files = [f for f in sorted((run / "cells").glob("*.json")) if f.stem not in known]
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
    results = _read(ledger)
    for result in results:
        file = run / "cells" / f"{result.cell.digest}.json"
        if not file.exists():
            write_result(file, result.to_dict())
    return len(results)


def _read(ledger: Path) -> list[Result]:
    with lzma.open(ledger, "rt", encoding="utf-8") as lines:
        return [Result.from_dict(json.loads(line)) for line in lines]


if __name__ == "__main__":
    _paths = Path(sys.argv[2]), Path(sys.argv[3])
    print(pack(*_paths) if sys.argv[1] == "pack" else unpack(*_paths), "cells")
