"""Graphs by name or path, with the split that they come with or a random one of 80/20."""

from grapheraser.datasets.generate import GeneratedGraph, generate_graph
from grapheraser.datasets.load import (
    PUBLIC,
    DatasetInfo,
    data_root,
    dataset_info,
    default_shards,
    load_dataset,
)

__all__ = [
    "PUBLIC",
    "DatasetInfo",
    "GeneratedGraph",
    "data_root",
    "dataset_info",
    "default_shards",
    "generate_graph",
    "load_dataset",
]
