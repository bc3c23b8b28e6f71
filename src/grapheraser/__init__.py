"""Exact unlearning for graph neural networks."""
