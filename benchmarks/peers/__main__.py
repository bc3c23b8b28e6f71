"""Measure the peers, keep the result and write it into docs/peers.md.

    OMP_NUM_THREADS=1 taskset -c 0 python -m benchmarks.peers
    python -m benchmarks.peers --datasets cora --seeds 1 --attacked 20 --streamed 100 --every 20

The second is a first look. The JSON goes to benchmarks/results/peers.json. Finished cells are kept
under runs/peers, and a stopped run goes on from there.
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks import guides
from benchmarks.peers.methods import METHODS
from benchmarks.peers.run import ATTACKED, DATASETS, EVERY, SMALL, STREAMED, run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--small", nargs="*", default=SMALL, help="those attacked and streamed")
    parser.add_argument("--methods", nargs="+", default=tuple(METHODS), choices=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--attacked", type=int, default=ATTACKED, help="requests of an attack")
    parser.add_argument("--streamed", type=int, default=STREAMED, help="requests of a stream")
    parser.add_argument("--every", type=int, default=EVERY, help="requests between two looks")
    given = parser.parse_args()
    report = run(
        given.datasets,
        given.methods,
        small=given.small,
        seeds=given.seeds,
        attacked=given.attacked,
        streamed=given.streamed,
        every=given.every,
        progress=lambda text: print(text, file=sys.stderr, flush=True),
    )
    (guides.RESULTS / "peers.json").write_text(json.dumps(report, indent=1) + "\n")
    guides.write_peers(report)


if __name__ == "__main__":
    main()
