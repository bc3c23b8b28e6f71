"""The models as values, one declaration each.

Nothing here imports torch, so that a trained run can predict without waiting for it. The PyG
modules are made of `grapheraser.models.modules`.
"""

from grapheraser.models.builtin import (
    GNNS,
    PRESETS,
    architecture_of,
    declaration_of,
    initial_weights,
)
from grapheraser.models.declaration import Architecture, Declaration, Parameter
from grapheraser.models.resolve import (
    RELATIONAL,
    CustomModel,
    Model,
    ModuleFactory,
    RelationalModel,
    resolve_model,
)
from grapheraser.models.spec import KINDS, ModelSpec

__all__ = [
    "GNNS",
    "KINDS",
    "PRESETS",
    "RELATIONAL",
    "Architecture",
    "CustomModel",
    "Declaration",
    "Model",
    "ModelSpec",
    "ModuleFactory",
    "Parameter",
    "RelationalModel",
    "architecture_of",
    "declaration_of",
    "initial_weights",
    "resolve_model",
]
