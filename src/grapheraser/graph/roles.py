"""The roles of nodes, and the label of unlabelled ones."""

UNLABELLED = -1
NO_ROLE, TRAIN, TEST = 0, 1, 2
