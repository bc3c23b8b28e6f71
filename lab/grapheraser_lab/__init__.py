"""Measure GraphEraser: the evaluation of the paper, benchmarks, attacks, rivals."""
