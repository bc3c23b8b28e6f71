"""The Merkle tree of a graph, and the register of a run."""
