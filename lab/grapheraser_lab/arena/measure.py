"""What the arena asks of a method: cells of five kinds, each with everything that it depends on.

- ``arena-utility``: a share is forgotten at once, beside a fresh fit on what is left; then single
  requests, timed.
- ``arena-stream``: one request after the other; how far the model has drifted from a fresh fit.
- ``arena-versions``: whoever sees answers before and after looks for what went.
- ``arena-members``: whoever sees one version, and trains shadow models, looks for what was in it.
- ``arena-edges``: edges that were planted between classes are forgotten (the test that GIF's
  authors use), and forgotten edges are looked for by how alike the answers at both ends are (the
  idea of TrendAttack), beside how well that finds them where everything was retrained.

Attackers ask about what is left, as everybody can; never about what went.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.audit.statistics import auc
from grapheraser.graph import AddEdges, Edges
from grapheraser.seeding import generator
from grapheraser_lab.arena.methods import (
    Rival,
    claims_exactness,
    learned,
    made,
    method_of,
    task_of,
)
from grapheraser_lab.arena.worlds import World, world_of
from grapheraser_lab.framework.cell import KINDS, Kind
from grapheraser_lab.rivals.measure import false_edges, finite, relative

_SINGLES = 5
_PLANTED = 0.1
_MOST_PAIRS = 500
_SHADOWS = 2

Answers = NDArray[Any]


def utility(config: Mapping[str, Any]) -> dict[str, Any]:
    """Measure a request for many, and single ones."""
    world, kind, seed = _world(config), config["requests"], int(config["seed"])
    method, fitting, _ = _measured(lambda: _fitted(config, world))
    before = _score(method, world)
    order = world.order(kind, seed)
    many = order[: max(1, round(config["share"] * len(order)))]
    request = world.request(kind, many)
    _, seconds, memory = _measured(lambda: method.unlearn(request))
    rest = world.without(request)
    found = judged(method, _afresh(method, config, rest), rest)
    times = []
    for item in order[len(many) : len(many) + _SINGLES]:
        one = rest.request(kind, [item])
        times.append(_measured(lambda one=one: method.unlearn(one))[1])  # type: ignore[misc]
        rest = rest.without(one)
    return {
        "metric": world.metric,
        "before": before,
        **found,
        "fit_seconds": fitting,
        "batch_seconds": seconds,
        "batch_bytes": memory,
        "seconds": float(np.median(times)),
    }


def judged(method: Any, fresh: Any, rest: World) -> dict[str, Any]:
    """Compare a method that has forgotten with one that was fitted on what is left.

    Returns: both scores; ``apart``, the mean total variation between their answers; ``parameters``,
    the distance of what they learned as a share of its length, None where it can't be compared;
    ``same``, whether answers, and what was learned where it is shown, have the same bits; and
    whether the method claims so.
    """
    ours, theirs = (np.asarray(one.predict_proba(rest.questions)) for one in (method, fresh))
    mine, other = learned(method), learned(fresh)
    same = _same(ours, theirs) and (
        mine is None or other is None or (mine.keys() == other.keys() and _all_same(mine, other))
    )
    apart = np.abs(ours.astype(np.float64) - theirs).reshape(len(ours), -1).sum(axis=1).mean()
    return {
        "after": rest.measure(ours, rest.truth),
        "retrained": rest.measure(theirs, rest.truth),
        "apart": finite(apart / (2 if ours.ndim > 1 else 1)),
        "parameters": None if mine is None or other is None else relative(mine, other),
        "same": bool(same),
        "claims_exact": claims_exactness(method),
    }


def stream(config: Mapping[str, Any]) -> dict[str, Any]:
    """Forget one after the other, and look now and then how far the model is from a fresh fit."""
    world, kind = _world(config), config["requests"]
    order = world.order(kind, int(config["seed"]))
    count = min(int(config["count"]), len(order) // 2)
    every = max(1, count // int(config["looks"]))
    method, times, points = _fitted(config, world), [], []
    for number, item in enumerate(order[:count], start=1):
        request = world.request(kind, [item])
        times.append(_measured(lambda request=request: method.unlearn(request))[1])  # type: ignore[misc]
        world = world.without(request)
        if number % every == 0 or number == count:
            found = judged(method, _afresh(method, config, world), world)
            points.append({"requests": number, **found})
    return {"forgotten": count, "points": points, "seconds": float(np.median(times))}


def versions(config: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what went from what stayed by how answers around both have moved: an AUC; .5 is a guess.

    For each request, the attacker sees what is answered around two candidates (neighbours of nodes,
    ends of edges) before and after, and takes the one around which more has moved.
    """
    world, kind = _world(config), config["requests"]
    order = world.order(kind, int(config["seed"]))
    count = min(int(config["count"]), len(order) // 2)
    method = _fitted(config, world)
    moved: list[float] = []
    for item, decoy in zip(order[:count], order[::-1], strict=False):
        request = world.request(kind, [item])
        rest = world.without(request)
        around = [world.around(kind, one) for one in (item, decoy)]
        around = [asked[rest.left(asked)] for asked in around]
        asked, world = np.concatenate(around), rest
        before = np.asarray(method.predict_proba(asked)) if min(map(len, around)) else None
        method.unlearn(request)
        if before is not None:
            change = (
                np.abs(method.predict_proba(asked) - before).reshape(len(asked), -1).sum(axis=1)
            )
            moved += [float(part.mean()) for part in np.split(change, [len(around[0])])]
    gone = np.arange(len(moved)) % 2 == 0
    return {"auc": auc(np.array(moved), gone) if moved else None, "forgotten": len(moved) // 2}


def members(config: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what was forgotten from what was never there, by one version: an AUC.

    Of both, the attacker knows where they were, and asks about what is left there: neighbours of a
    node whose label is known, pairs of them, the ends of an edge. What tells a member is learned on
    shadow models, fitted on other splits, that have forgotten nothing.
    """
    from sklearn.linear_model import LogisticRegression

    splits = range(int(config["seed"]) + 1, int(config["seed"]) + 1 + _SHADOWS)
    shadows = [_looks({**config, "seed": seed}, forget=False) for seed in splits]
    target = _looks(config, forget=True)
    shown, inside = (np.concatenate(parts) for parts in zip(*shadows, strict=True))
    model = LogisticRegression(max_iter=1000).fit(shown, inside)
    return {"auc": auc(model.decision_function(target[0]), target[1]), "candidates": len(target[1])}


def _looks(config: Mapping[str, Any], *, forget: bool) -> tuple[Answers, NDArray[np.bool_]]:
    """Return what is answered around members and around others, and who was a member."""
    full, kind = _world(config), config["requests"]
    order = full.order(kind, int(config["seed"]))
    size = min(int(config["count"]), len(order) // 10)
    candidates = order[: 2 * size]
    inside, outside = (full.request(kind, some) for some in (order[:size], order[size : 2 * size]))
    method = _fitted(config, full.without(outside))
    if forget:
        method.unlearn(inside)
    left = full.without(full.request(kind, candidates))
    rows, member = [], []
    for at, item in enumerate(candidates):
        near = full.around(kind, item)
        near = near[left.left(near)]
        if len(near):
            rows.append(full.shown(np.asarray(method.predict_proba(near)), item))
            member.append(at < size)
    return np.array(rows), np.array(member)


def edges(config: Mapping[str, Any]) -> dict[str, Any]:
    """Forget planted edges, and look for real ones that were forgotten."""
    world, seed = _world(config), int(config["seed"])
    planted = false_edges(world.graph, _PLANTED, seed)
    poisoned = replace(world, graph=world.graph.updated([AddEdges(planted)]))
    method = _fitted(config, poisoned)
    under_attack = _score(method, world)
    method.unlearn(Edges(planted))
    clean = _fitted(config, world)
    healed, without = _score(method, world), _score(clean, world)
    taken = world.order("edges", seed)[: min(_MOST_PAIRS, world.graph.num_edges // 20)]
    clean.unlearn(Edges(taken))
    rest = world.without(Edges(taken))
    looked_at = {"recovery": clean, "recovery_retrained": _fitted(config, rest)}
    found = {name: _recovered(one, rest, taken, seed) for name, one in looked_at.items()}
    return {"attacked": under_attack, "healed": healed, "clean": without, **found}


def _recovered(method: Any, rest: World, taken: list[Any], seed: int) -> float:
    """AUC of telling forgotten edges from other pairs by how alike both ends are answered."""
    drawn = generator(seed, "arena", "recovery").choice(rest.graph.train_nodes, (len(taken), 2))
    pairs = np.concatenate([np.array(taken), drawn])
    return auc(rest.alike(method, pairs), np.arange(len(pairs)) < len(taken))


# -- what they share -----------------------------------------------------------------------------


def _world(config: Mapping[str, Any]) -> World:
    return world_of(task_of(method_of(config["method"])), config["dataset"], int(config["seed"]))


def _fitted(config: Mapping[str, Any], world: World) -> Any:
    """Return the method, fitted; `fit` may return it or nothing."""
    method = made(method_of(config["method"]), int(config["seed"]))
    method.fit(world.graph)
    return method


def _afresh(method: Any, config: Mapping[str, Any], rest: World) -> Any:
    """Return a fit on what is left; of the laboratory's own rivals with the same random draws."""
    return method.retrained() if isinstance(method, Rival) else _fitted(config, rest)


def _score(method: Any, world: World) -> float:
    return world.measure(np.asarray(method.predict_proba(world.questions)), world.truth)


def _measured(work: Callable[[], Any]) -> tuple[Any, float, int | None]:
    """Do some work: its result, the processor time, and how much memory it needed at the most."""
    resettable = Path("/proc/self/clear_refs")
    with suppress(OSError):
        resettable.write_text("5")  # begins to count the peak anew; Linux
    started, held = time.process_time(), _memory("VmRSS")
    result = work()
    seconds, most = time.process_time() - started, _memory("VmHWM")
    return result, seconds, None if held is None or most is None else max(most - held, 0)


def _memory(name: str) -> int | None:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return 1024 * int(line.split()[1])
    return None


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _all_same(mine: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> bool:
    return all(_same(np.asarray(mine[name]), np.asarray(other[name])) for name in mine)


for _name, _measure in {
    "utility": utility,
    "stream": stream,
    "versions": versions,
    "members": members,
    "edges": edges,
}.items():
    KINDS.add(f"arena-{_name}", Kind(_measure, timed=_name in ("utility", "stream")))
