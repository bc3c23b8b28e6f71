"""Pictures of graphs and partitions (the `plots` extra)."""
