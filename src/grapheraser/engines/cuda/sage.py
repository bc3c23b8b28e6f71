"""GraphSAGE: the kernels of GCN, which know pairs of weights."""

from grapheraser.engines.cuda.gcn import buffers, epoch, gradients

__all__ = ["buffers", "epoch", "gradients"]
