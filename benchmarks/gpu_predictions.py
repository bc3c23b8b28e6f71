"""Predicting on a GPU, on all cores and on one, in one run; the bits must be the same.

Run it as ``python benchmarks/gpu_predictions.py [DATASET] [SHARDS]``.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from unittest import mock

import numpy as np

import grapheraser as ge
from grapheraser.models import GNNS
from grapheraser.training.inference import posteriors

NEVER, ALWAYS = 2**62, 0


def main(dataset: str = "physics", shards: str = "100") -> None:
    graph = ge.load_dataset(dataset)
    nodes, cores = graph.test_nodes, os.sched_getaffinity(0)
    for model in GNNS:
        run = ge.GraphEraser(model, num_shards=int(shards), epochs=3, device="cuda").fit(graph)
        answers = []
        for label, allowed in ((f"{len(cores)} cores", cores), ("one core", {min(cores)})):
            os.sched_setaffinity(0, allowed)
            for place, worth in (("processor", NEVER), ("GPU", ALWAYS)):
                with mock.patch.object(posteriors, "_WORTH_SENDING", worth):
                    run.predict_proba(nodes)
                    seconds = []
                    for _ in range(5):
                        started = time.perf_counter()
                        answers.append(run.predict_proba(nodes))
                        seconds.append(time.perf_counter() - started)
                print(f"{model} {label} {place}: {statistics.median(seconds):.3f} s", flush=True)
        os.sched_setaffinity(0, cores)
        assert all(np.array_equal(answers[0], each) for each in answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
