"""The roles of nodes, which of them take part in training, and the label of unlabelled nodes."""

from __future__ import annotations

UNLABELLED = -1
CONTEXT, TRAIN, TEST, VALIDATION = 0, 1, 2, 3
# The roles whose nodes are in shards, by the setting `context`.
SHARDED_ROLES = {
    "none": (TRAIN,),
    "unlabelled": (TRAIN, CONTEXT),
    "all": (TRAIN, CONTEXT, VALIDATION, TEST),
}
DEFAULT_CONTEXT = "unlabelled"
# The parts of a split that have names, and all words for roles in files.
PARTS = {"train": TRAIN, "validation": VALIDATION, "test": TEST}
ROLE_OF = {**PARTS, "valid": VALIDATION, "val": VALIDATION, "context": CONTEXT, "": CONTEXT}
