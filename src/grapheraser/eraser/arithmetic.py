"""The arithmetic that bits depend on: what trained a run's shards, and what would train here.

The state of a run names it under ``versions``. Where it is another here, no shard that is kept fits
one that is retrained: a change retrains them all, and a replay can't be compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping

from grapheraser.engines.engine import PROCESSOR
from grapheraser.environment import versions
from grapheraser.eraser.missing import MissingEngine
from grapheraser.eraser.settings import Settings
from grapheraser.reports.wording import listed

# All that the bits of some engine depend on.
_OF_ENGINES = ("torch", "torch_geometric", "triton", "gpu", PROCESSOR)


def made_with(settings: Settings, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a state made here depends on: versions, and the processor where it matters.

    ``before`` is that of the state that it was made from: without its engine a run keeps all its
    shards, and what trained them.
    """
    found = versions(settings.device)
    if before is not None and isinstance(settings.engine, MissingEngine):
        return {**found, **{name: before[name] for name in _OF_ENGINES if name in before}}
    processor = getattr(settings.engine, PROCESSOR, None)
    return found if processor is None else {**found, PROCESSOR: processor}


def trained_elsewhere(settings: Settings, made: Mapping[str, str]) -> str | None:
    """Say what the shards of a run were trained with and what there is here; None: the same.

    ``made`` is what its state was made with. Runs of earlier versions don't name the processor: it
    may be another.
    """
    if settings.training.model.closed_form:
        return None
    here = made_with(settings)
    other = [name for name in settings.engine.depends_on if made.get(name) != here.get(name)]
    if not other:
        return None
    there = listed([f"{name} {made.get(name, 'not recorded')}" for name in other])
    return f"{there} there, {listed([f'{name} {here[name]}' for name in other])} here"
