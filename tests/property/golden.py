"""Digests of fitted and changed states on the demo graph, to be recorded and compared.

    python -m tests.property.golden record    # writes golden.json beside this file
    python -m tests.property.golden links     # those of link runs alone, into the same file
    python -m tests.property.golden typed     # likewise those of typed graphs and facts
    python -m tests.property.golden cuda      # the same for engine cuda, on a machine with a GPU

A change that is meant to leave every bit alone leaves these digests alone. Record them anew only
where a change of the bits is intended, and say why in the commit.

States whose bits are the same on every processor stand under "states". What torch trains follows
from its arithmetic, and is compared only where that is the recorded one: it stands under
"machines", by `machine`. Recording on another machine adds to them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation.members import KNOWN
from grapheraser.environment import torch_processor, versions
from grapheraser.models.spec import CLOSED_FORM

FILE = Path(__file__).with_name("golden.json")
MODELS = ("gcn", "sage", "gat", "gin", "mlp")
PAPER = tuple(f"{model}:paper" for model in MODELS)
AGGREGATIONS = ("mean", "majority", "learned", "routed")
PARTITIONS = ("random", "blpa", "bekm", "metis")
BASE: dict[str, Any] = {"num_shards": 5, "epochs": 6, "seed": 3}


def cases(engines: tuple[str, ...] = ("cpu", "pyg")) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every configuration by a name that says what it is."""
    for engine in engines:
        device = "cuda" if engine == "cuda" else "cpu"
        for model in (*MODELS, *PAPER):
            yield f"{engine} {model}", {**BASE, "model": model, "engine": engine, "device": device}
    if "cpu" not in engines:
        return
    for aggregation in AGGREGATIONS:
        yield f"cpu gcn {aggregation}", {**BASE, "aggregation": aggregation, "global_expert": False}
    yield "cpu gcn pooled", {**BASE, "global_expert": True}
    for member in KNOWN:
        yield f"cpu gcn pooled {member}", {**BASE, "members": [member]}
    yield "cpu gcn one shard", {**BASE, "num_shards": 1}
    yield "cpu gcn one shard pooled", {**BASE, "num_shards": 1, "global_expert": True}
    for model in CLOSED_FORM:
        yield model, {**BASE, "model": model}
    yield "closed-form, all sampled", {**BASE, "model": "closed-form", "sample": "all"}
    for partition in PARTITIONS:
        yield f"cpu gcn {partition}", {**BASE, "partition": partition}


LINKS = "links "


def link_cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every configuration of link runs."""
    shards = {"num_shards": 3, "epochs": 4, "width": 8}
    for members in ("closed-form", "shards", "both"):
        options = {} if members == "closed-form" else shards
        yield f"{LINKS}{members}", {"members": members, "seed": 3, **options}


def link_digests(options: dict[str, Any]) -> dict[str, str]:
    """Digests after a fit, after forgetting, and after adding a node; see `digests`."""
    graph = ge.load_dataset("demo")
    links = ge.LinkEraser(**options).fit(graph)
    found = {"fitted": digest_of_links(links)}
    u, v = graph.edges[17]
    links.unlearn([ge.Nodes([3, 1200]), ge.Edges([(int(u), int(v))]), ge.Features([77, 78])])
    found["unlearned"] = digest_of_links(links)
    links.insert(9_000_000, graph.x[[5]], [8, 13, 21])
    found["inserted"] = digest_of_links(links)
    return found


def digest_of_links(links: ge.LinkEraser) -> str:
    """SHA-256 of every array of the state, of some probabilities and of a ranking."""
    graph = links.graph_
    pairs = np.concatenate([graph.edges[::200], np.stack([graph.ids[:30], graph.ids[-30:]]).T])
    ranked = links.rank(int(graph.ids[40]), top=20)
    arrays: dict[str, NDArray[Any]] = {
        **links._snapshot.state.tensors(),
        "probabilities": links.predict_proba(pairs),
        "ranked": ranked.nodes,
        "odds": ranked.probabilities,
    }
    return _digest(arrays)


def typed_cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every configuration of typed graphs, by how many customers there are, and of facts."""
    yield "typed", {"customers": 2000}
    yield "typed, few labels", {"customers": 300}
    for steps in (2, 3):
        yield f"facts, {steps} steps", {"steps": steps}


def typed_digests(options: dict[str, Any]) -> dict[str, str]:
    """Digests after a fit, after forgetting, and after adding to a typed graph; see `digests`."""
    if "steps" in options:
        triples = np.unique(np.random.default_rng(5).integers([60, 4, 60], size=(500, 3)), axis=0)
        triples = triples[triples[:, 0] != triples[:, 2]]
        graph = ge.Graph.from_facts(triples, entities=60, relations=list("abcd"))
        made: Any = ge.LinkEraser(seed=3, **options).fit(graph)
        head, relation, tail = graph.facts[17].tolist()
        gone: list[Any] = [ge.Nodes([7]), ge.Edges([(head, tail)], type="abcd"[relation])]
        come: list[Any] = [ge.AddEdges([(1, 2)], type="c")]
    else:
        made = ge.GraphEraser("closed-form", seed=3).fit(payments(options["customers"]))
        gone = [ge.Nodes([5], cascade="payment"), ge.Nodes(["merchant/2"]), ge.Features([8])]
        come = [ge.AddNodes([9999], [[0.5]], [1]), ge.AddEdges([(9999, 4)], type="makes")]
    found = {"fitted": digest_of_types(made)}
    made.unlearn(gone)
    found["unlearned"] = digest_of_types(made)
    made.update(come)
    found["inserted"] = digest_of_types(made)
    return found


def payments(customers: int) -> ge.Graph:
    """Return customers of two classes, and their payments to merchants."""
    rng = np.random.default_rng(5)
    payer = rng.integers(customers, size=4 * customers)
    ages, labels = rng.random(customers).round(3), rng.integers(2, size=customers)
    split = ["test" if i % 5 == 0 else "train" for i in range(customers)]
    own = {"id": range(customers), "age": ages, "label": labels, "split": split}
    to = {"source": range(len(payer)), "target": rng.integers(20, size=len(payer))}
    return ge.Graph.from_typed_tables(
        {"customer": own, "payment": len(payer), "merchant": 20},
        {
            ("customer", "makes", "payment"): {"source": payer, "target": range(len(payer))},
            ("payment", "to", "merchant"): to,
        },
        target="customer",
        num_classes=2,
    )


def digest_of_types(made: Any) -> str:
    """SHA-256 of every array of the state, and of some answers."""
    graph = made.graph_
    if isinstance(made, ge.LinkEraser):
        answers = made.predict_proba([(h, "b", t) for h, _, t in graph.facts[::40].tolist()])
    else:
        answers = made.predict_proba(graph.test_nodes[::10])
    return _digest({**made._snapshot.state.tensors(), "answers": answers})


def digests(options: dict[str, Any]) -> dict[str, str]:
    """Digests of the state after a fit, after forgetting, and after adding a node."""
    graph = ge.load_dataset("demo")
    eraser = ge.GraphEraser(**options).fit(graph)
    found = {"fitted": digest(eraser)}
    u, v = graph.edges[17]
    eraser.unlearn([ge.Nodes([3, 1200]), ge.Edges([(int(u), int(v))]), ge.Features([77, 78])])
    found["unlearned"] = digest(eraser)
    eraser.insert(9_000_000, graph.x[[5]], 2, [8, 13, 21])
    found["inserted"] = digest(eraser)
    return found


def digest(eraser: ge.GraphEraser) -> str:
    """SHA-256 of every array of the state, and of some posteriors."""
    arrays: dict[str, NDArray[Any]] = {
        "partition/nodes": eraser.partition_.nodes,
        "partition/labels": eraser.partition_.labels,
        "posteriors": eraser.predict_proba(eraser.graph_.ids[::40]),
    }
    for shard, weights in eraser.shards_.items():
        arrays[f"shard {shard}/columns"] = weights.columns
        for name, tensor in weights.tensors.items():
            arrays[f"shard {shard}/{name}"] = tensor
    for name, tensor in eraser.aggregator_.tensors.items():
        arrays[f"aggregator/{name}"] = tensor
    return _digest(arrays)


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def trained_by_torch(options: dict[str, Any]) -> bool:
    """Whether the bits of a case follow from the arithmetic of torch."""
    return options.get("engine") == "pyg" or options.get("members") in ("shards", "both")


def machine() -> str:
    """What the bits of states that torch trains depend on besides the code."""
    found = versions()
    return f"torch {found['torch']}, PyG {found['torch_geometric']}, {torch_processor('cpu')}"


def portable_cases() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """Cases that have the same bits on every processor, with what computes their digests."""
    for compute, named in every_case():
        for name, options in named:
            if not trained_by_torch(options):
                yield name, partial(compute, options)


def every_case() -> tuple[tuple[Any, Iterator[tuple[str, dict[str, Any]]]], ...]:
    """Every case, with what computes its digests."""
    links, typed = (link_digests, link_cases()), (typed_digests, typed_cases())
    return (digests, cases()), links, typed


def main(what: str) -> None:
    """Record all digests."""
    if what == "cuda":
        found = {name: digests(options) for name, options in cases(("cuda",))}
        print(json.dumps(found, indent=1))
        return
    golden = json.loads(FILE.read_text())
    here = golden["machines"].setdefault(machine(), {})
    alone = {"links": link_digests, "typed": typed_digests}
    for compute, named in every_case():
        if what in alone and compute is not alone[what]:
            continue
        for name, options in named:
            kept = here if trained_by_torch(options) else golden["states"]
            kept[name] = compute(options)
    FILE.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
