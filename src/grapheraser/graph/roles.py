"""The part a node plays, and the label of a node that has none."""

UNLABELLED = -1
NO_ROLE, TRAIN, TEST = 0, 1, 2
