"""The models: built-in architectures as values, and as PyG modules."""

from grapheraser.models.initial import initial_weights, input_parameters, parameter_shapes
from grapheraser.models.modules import build_module, load_weights
from grapheraser.models.resolve import CustomModel, Model, ModuleFactory, resolve_model
from grapheraser.models.spec import KINDS, PRESETS, ModelSpec

__all__ = [
    "KINDS",
    "PRESETS",
    "CustomModel",
    "Model",
    "ModelSpec",
    "ModuleFactory",
    "build_module",
    "initial_weights",
    "input_parameters",
    "load_weights",
    "parameter_shapes",
    "resolve_model",
]
