"""One declaration per kind of model, and kernels of the same names for what it declares."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from grapheraser.inference import forward
from grapheraser.models import KINDS, architecture_of, declaration_of
from tests.engines.variants import DEEP, VARIANTS

EVERY = VARIANTS | DEEP


@pytest.mark.gnn
@pytest.mark.parametrize("name", EVERY)
def test_tensors_are_those_of_the_pyg_module(name: str) -> None:
    from grapheraser.models.modules import build_module

    architecture = architecture_of(EVERY[name], 30, 5)
    module = build_module(EVERY[name], 30, 5)
    parameters = {key: tuple(value.shape) for key, value in module.named_parameters()}
    assert architecture.parameter_shapes == parameters
    constants = ("num_batches_tracked", ".eps")
    buffers = {
        key: tuple(value.shape)
        for key, value in module.named_buffers()
        if not key.endswith(constants)
    }
    assert architecture.buffer_shapes == buffers


@pytest.mark.parametrize("name", EVERY)
def test_the_inputs_alone_have_a_column_per_feature(name: str) -> None:
    few, many = (architecture_of(EVERY[name], count, 5) for count in (30, 31))
    assert few.inputs.shape != many.inputs.shape
    assert few.inputs.inner is not None
    assert few.inputs.inner.count == few.inputs.shape[1] == 30
    assert [p.shape for p in few.others] == [p.shape for p in many.others]
    roles = [parameter.role for parameter in (few.inputs, *few.others)]
    assert len(set(roles)) == len(roles)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_kernels_for_all_that_it_declares(kind: str) -> None:
    specs = [spec for spec in VARIANTS.values() if spec.kind == kind]
    declared = {p.role for spec in specs for p in architecture_of(spec, 30, 5).others}
    assert set(import_module(f"grapheraser.engines.cpu.{kind}").ROLES) == declared
    assert find_spec(f"grapheraser.engines.cuda.{kind}")
    assert callable(getattr(forward, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_presets_are_of_the_kind_that_declares_them(kind: str) -> None:
    declaration = declaration_of(kind)
    assert declaration.preset.kind == declaration.paper.kind == kind
    assert declaration.reach(declaration.preset) >= declaration.preset.hops


def test_declarations_need_no_torch() -> None:
    code = "import sys, grapheraser.models; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
