"""The models as values; `grapheraser.models.modules` has them as PyG modules.

Nothing here imports torch, so that a trained run can predict without waiting for it.
"""

from grapheraser.models.initial import initial_weights, input_parameters, parameter_shapes
from grapheraser.models.resolve import CustomModel, Model, ModuleFactory, resolve_model
from grapheraser.models.spec import GNNS, KINDS, PRESETS, ModelSpec

__all__ = [
    "GNNS",
    "KINDS",
    "PRESETS",
    "CustomModel",
    "Model",
    "ModelSpec",
    "ModuleFactory",
    "initial_weights",
    "input_parameters",
    "parameter_shapes",
    "resolve_model",
]
