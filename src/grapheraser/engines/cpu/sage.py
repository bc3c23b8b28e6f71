"""GraphSAGE: the kernel of GCN with a second product beside the first."""

from grapheraser.engines.cpu.gcn import ROLES, options, train

__all__ = ["ROLES", "options", "train"]
