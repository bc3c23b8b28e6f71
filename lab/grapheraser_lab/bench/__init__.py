"""Measurements that put two sides next to each other in one run."""
