"""Figures of graphs, partitions and measurements (the extra `plots`)."""
