"""Figures of experiments and benchmarks, by matplotlib."""
