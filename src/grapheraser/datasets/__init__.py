"""Named graphs with a random 80/20 split."""

from grapheraser.datasets.load import DatasetInfo, dataset_info, default_shards, load_dataset
from grapheraser.datasets.public import PUBLIC, data_root

__all__ = ["PUBLIC", "DatasetInfo", "data_root", "dataset_info", "default_shards", "load_dataset"]
