"""The built-in models by name."""

from __future__ import annotations

from grapheraser.models.declaration import declaration_of
from grapheraser.models.spec import KINDS, ModelSpec

GNNS = tuple(kind for kind in KINDS if declaration_of(kind).preset.hops)

PRESETS: dict[str, ModelSpec] = {
    **{kind: declaration_of(kind).preset for kind in KINDS},
    **{f"{kind}:paper": declaration_of(kind).paper for kind in KINDS},
}
