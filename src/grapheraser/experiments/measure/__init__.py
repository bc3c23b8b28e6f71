"""What a cell measures: one module per kind. Importing this package registers them all."""

from grapheraser.experiments.measure import cuts, embedded, requests, utility

__all__ = ["cuts", "embedded", "requests", "utility"]
