"""The claim that a receipt may make.

A statement is `EXACT`, or weaker in as many ways as hold for the run:

    exact                                       what a fresh fit on the remaining raw data gives
    exact given partition                       ... in the shards of a partition that saw more
    exact given schema                          ... with a schema that was found in more
    exact given partition and schema
    exact as replayed [given ...]               ... as far as code of the user's repeats itself
    retrained, not exact                        that code gave other bits when it ran again

All of it follows from how a run was fitted and never from a request: a statement that became weaker
when the last member of a class went would say that it was the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grapheraser.receipts import EXACT, NOT_EXACT

# How training a shard twice went, where code of the user's has a part in it.
SAME, DIFFERENT, UNTRIED = "same", "different", "untried"
_SAME_STATE = (
    "The model is, bit for bit on the same device and library versions, what training on the "
    "remaining data alone gives"
)
# Parts of a schema, and what declares them; an item of a user's own is said as it is.
_SCHEMA = {
    "classes": "the classes (num_classes or class_names declares them)",
    "range": "the range of the numbers (label_range declares it)",
    "names": "that ids are names (names=True declares it)",
    "nodes": "the nodes, as ends of edges (a table of nodes declares them)",
    "weights": "that edges have weights (weighted=True or weight=... declares it)",
    "categories": "the categories of columns (categories={...} declares them)",
    "gaps": "which columns have gaps (missing={...} declares them)",
    "features": "the order of the features (features=[...] declares it)",
    "users and items": "which users and items there are (users=[...] and items=[...] declare them)",
}
_REPLAYS = {
    SAME: "It rests on code of the operator's own that repeats itself: a shard was trained twice "
    "when the run was fitted, with the same bits.",
    DIFFERENT: "Training a shard twice when the run was fitted gave different bits, so this is "
    "not bit for bit what training on the remaining data alone would give again.",
    UNTRIED: "Whether training repeats itself was not tried when the run was fitted, so nothing is "
    "claimed bit for bit.",
}
_RETRAINED = (
    "Every shard that had learned from the forgotten data was retrained on the remaining data "
    "alone, by code of the operator's own"
)


def exactness(
    method: str, inputs: Iterable[str], schema: Iterable[str] = (), replay: str | None = None
) -> dict[str, Any]:
    """The statement that holds for a run, with its reason in words.

    ``replay`` is `SAME`, `DIFFERENT` or `UNTRIED` where code of the user's own trains; else None.
    """
    inputs, schema = sorted(inputs), sorted(schema)
    given = [name for name, data in (("partition", inputs), ("schema", schema)) if data]
    if replay in (DIFFERENT, UNTRIED):
        statement, first = NOT_EXACT, _RETRAINED
    else:
        base = EXACT if replay is None else f"{EXACT} as replayed"
        statement = " given ".join([base, *filter(None, [" and ".join(given)])])
        first = _SAME_STATE + (f" given the same {' and '.join(given)}" if given else "")
    reasons = [first + _of_partition(inputs)]
    if schema:
        found = _listed([_SCHEMA.get(item, item) for item in schema])
        reasons.append(f"Found in the data that the run was fitted on: {found}.")
    if replay is not None:
        reasons.append(_REPLAYS[replay])
    return {
        "statement": statement,
        "partition": method,
        "partition_inputs": inputs,
        "schema": schema,
        "replay": replay,
        "reason": " ".join(reasons),
    }


def same_claim(said: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Tell whether a receipt claims what holds for its run.

    Receipts from before schema and replays were told say nothing of either, nor do those from
    before aggregators were replayed; of the partition they have to say the same.
    """
    told = said.get("replay") is not None or now["replay"] != UNTRIED
    if "schema" in said and told:
        return dict(said) == dict(now)
    return all(said.get(name) == now[name] for name in ("partition", "partition_inputs"))


def _of_partition(inputs: list[str]) -> str:
    if not inputs:
        return ", the partition included: it follows from node ids and a key."
    if inputs == ["nodes"]:
        return (
            ". The partition knew which nodes existed; no features, edges or labels went into it."
        )
    data = _listed(inputs)
    return f". The partition was computed from {data}, those of the forgotten data included."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
