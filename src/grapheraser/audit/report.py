"""Audit one fitted run within a given time: proofs, attacks, then the findings in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser import checks
from grapheraser.audit.attacks.answers import state_of
from grapheraser.audit.attacks.edges import edge_attack
from grapheraser.audit.attacks.lira import lira
from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.partition_leak import partition_leak
from grapheraser.audit.attacks.planted import challenge_edges, plant_and_forget
from grapheraser.audit.attacks.recovery import inversion_attack, reconstruction_attack
from grapheraser.audit.attacks.shadow import (
    KEPT,
    KEPT_RESEEDED,
    RECUT,
    RECUT_RESEEDED,
    REFRESHED,
    SCENARIOS,
    Observations,
    fitted,
    observe,
    parameters,
    resplit,
)
from grapheraser.audit.attacks.tasks import graph_attack, link_attack
from grapheraser.audit.budget import Budget
from grapheraser.audit.findings import FAILED, LEAK, SKIPPED, Finding, findings
from grapheraser.audit.statistics import Result
from grapheraser.eraser import Eraser, load_eraser
from grapheraser.errors import InputError, MissingExtraError
from grapheraser.kinds import GRAPH_NAMES
from grapheraser.nodes import GraphEraser
from grapheraser.nodes.mitigations import CANDIDATES
from grapheraser.partition import PARTITIONERS
from grapheraser.reports.wording import duration, plural
from grapheraser.seeding import derive
from grapheraser.store.files import read_result
from grapheraser.store.residues.forgotten import Forgotten
from grapheraser.store.residues.search import search_run

FORMAT = "grapheraser-audit-2"
DATA = "audit.json"  # in the folder of a report
_REQUESTS = 80
_QUICK = ("logistic regression", "decision tree")
Say = Callable[[str], None]


@dataclass(frozen=True)
class AuditReport:
    """Figures and findings of an audit."""

    run: dict[str, Any]  # what was audited: folder, configuration, graph, requests so far
    sections: dict[str, dict[str, Any]]  # figures by question
    findings: tuple[Finding, ...]  # the same in words
    seconds: float  # how long it took
    minutes: float  # how long it was allowed to take
    made_at: str  # when it was done, UTC, ISO 8601

    @property
    def passed(self) -> bool:
        """True where no proof failed; leaks that are measured do not count as failures."""
        return not any(finding.level == FAILED for finding in self.findings)

    @property
    def leaks(self) -> int:
        return sum(finding.level == LEAK for finding in self.findings)

    @property
    def not_run(self) -> tuple[str, ...]:
        """The questions that were not put, each with the reason."""
        return tuple(f"{f.question} {f.measured}" for f in self.findings if f.level == SKIPPED)

    def to_dict(self) -> dict[str, Any]:
        verdict = {"passed": self.passed, "leaks": self.leaks, "not_run": list(self.not_run)}
        return {
            "format": FORMAT,
            **verdict,
            **asdict(self),
            "findings": [asdict(f) for f in self.findings],
        }


def report_folder(run: Path) -> Path:
    """Return the folder of the report on a run, unless another is asked for."""
    return run.with_name(f"{run.name}-audit")


def latest_report(run: Path) -> dict[str, Any] | None:
    """Read the last report on a run; None where there is none in its folder."""
    found = read_result(report_folder(run) / DATA)
    is_one = isinstance(found, dict) and found.get("format") == FORMAT
    return found if is_one else None


def audit_run(
    path: Path,
    *,
    minutes: float = 3.0,
    forgotten: Forgotten | None = None,
    seed: int = 0,
    say: Say = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    own: Mapping[str, Any] | None = None,
) -> AuditReport:
    """Audit the run in a folder; nothing in it is changed.

    The attacks have ``minutes``; the proofs take what they need. ``forgotten`` is what to look for
    in the files, where the caller knows it; ``own`` are parts of the user's own, as
    `GraphEraser.load` takes them.
    """
    minutes = checks.real("minutes", "audit", minutes, above=0)
    budget = Budget(60 * minutes, clock)
    eraser = load_eraser(path, **(own or {}))
    sections: dict[str, dict[str, Any]] = {}
    say("retraining from what is left, comparing bit for bit")
    sections["verification"] = eraser.verify().to_dict()
    say("searching the run's files")
    sections["search"] = search_run(path, forgotten).to_dict()
    kind, attacks = eraser.graph_.label_kind, ATTACKS.get(eraser.task.name, ())
    if not kind.is_classes and eraser.task.name != "graphs":
        say(f"no attack is made: they are about classes, and this run predicts {kind.words}")
        attacks = ()
    if eraser.graph_.types is not None:
        say("no attack is made: they are about graphs without types")
        attacks = ()
    fits = 2 * sum(attack.fits for attack in attacks) * sections["verification"]["seconds"]
    if attacks:
        most = f"attacking {minutes:g} minutes at most (--minutes)"
        say(f"{most}; all takes {duration(fits)} or more")
    sections |= _attacked(_Work(eraser, seed, budget), attacks, say)
    return AuditReport(
        run=_facts(path, eraser),
        sections=sections,
        findings=findings(sections),
        seconds=budget.spent,
        minutes=minutes,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _attacked(work: _Work, attacks: Sequence[Attack], say: Say) -> dict[str, dict[str, Any]]:
    """Make every attack that there is time for; return figures, or why it was not made."""
    budget, sections = work.budget, dict[str, dict[str, Any]]()
    for chosen in attacks:
        needed = 2 * chosen.fits * work.one_fit
        if needed > 4 * max(budget.left, 0):
            minutes = plural(max(1, round((budget.spent + needed) / 60)), "minute")
            why = f"there was no time for it; about {minutes} would do (--minutes)"
            sections[chosen.section] = {"skipped": why}
            continue
        say(chosen.words)
        try:
            sections[chosen.section] = chosen.make(work)
        except (InputError, MissingExtraError) as error:
            hint = f" ({error.hint})" if error.hint else ""
            sections[chosen.section] = {"skipped": f"{error.message}{hint}"}
    return sections


@dataclass(eq=False)
class _Work:
    """The attacks on one run, each within its share of the time."""

    eraser: Any  # of the task whose attacks these are
    seed: int  # of everything that the auditor draws
    budget: Budget  # time for all of them
    # How long the run takes to train, in seconds; known once one attack was made.
    one_fit: float = 0.0
    # Answers that the attacker has kept, for `mitigations`.
    seen: tuple[Observations, Observations] | None = None

    def planted(self) -> dict[str, Any]:
        """Plant a class; also measures how long the run takes to train."""
        watch = Budget(clock=self.budget.clock)
        result = plant_and_forget(self.eraser.graph_, parameters(self.eraser), seed=self.seed)
        self.one_fit = watch.spent / 3
        return result.to_dict()

    def links(self) -> dict[str, Any]:
        return link_attack(self.eraser, seed=self.seed, budget=self.budget).to_dict()

    def membership(self) -> dict[str, Any]:
        """Guess who was forgotten with both versions in sight, by scenario.

        Requests for one node are the easiest to see, and cheap as this run forgets; where
        everything is retrained for each, several nodes may have to share a request.
        """
        budget = self.budget.share(0.45)
        # Two runs are asked in every scenario; in three of them each request is a whole fit.
        fits = 3 * 2 * _REQUESTS * self.one_fit
        batch = 1 if fits < budget.left else 5 if fits / 5 < budget.left else 10
        plan = {KEPT: (KEPT, 1), KEPT_RESEEDED: (KEPT_RESEEDED, 1)}
        if batch > 1:
            plan[f"{KEPT}, batches"] = (KEPT, batch)
        plan |= {how: (how, batch) for how in (REFRESHED, RECUT, RECUT_RESEEDED)}
        own = self._own_run()
        results: dict[str, dict[str, Any]] = {}
        for number, (name, (how, count)) in enumerate(plan.items()):
            reseeded = bool(state_of(self.eraser).seeds)
            if how == RECUT and self.eraser.partition_.data_free and not reseeded:
                # Partitioned and retrained it is the same run, bit for bit, as the proof has shown.
                results[name] = {**results[KEPT], "words": f"{SCENARIOS[RECUT]}, the same run"}
                continue
            share = budget.share(0.9 / (len(plan) - number))
            seen = self._observed(own, how, count, share)
            if name == KEPT:
                self.seen = seen
            words = f"{SCENARIOS[how]}, {plural(count, 'node')} a request"
            result = attack(*seen, informed=True, seed=self.seed).to_dict()
            results[name] = {**result, "nodes_per_request": count, "words": words}
        return {"scenarios": results}

    def _own_run(self) -> GraphEraser:
        """Fit the attacker's run."""
        graph = resplit(self.eraser.graph_, derive(self.seed, "audit", "shadow"))
        return fitted(parameters(self.eraser), graph, derive(self.seed, "audit", "own") >> 1)

    def _observed(
        self, own: GraphEraser, how: str, count: int, budget: Budget
    ) -> tuple[Observations, Observations]:
        """Observe the attacker's own run, and the run under attack."""

        def seen(run: GraphEraser, name: str, budget: Budget) -> Observations:
            return observe(
                run,
                run.graph_,
                how,
                requests=min(_REQUESTS, 2 * _REQUESTS // count),
                nodes_per_request=count,
                # The report rests on this figure, so it takes more than a handful of requests.
                least=_REQUESTS // 2 if (how, count) == (KEPT, 1) else 3,
                seed=derive(self.seed, "audit", name),
                budget=budget,
            )

        return seen(own, "shadow", budget.share(0.5)), seen(self.eraser, "target", budget)

    def mitigations(self) -> dict[str, Any]:
        """Repeat the attack on this run through each of the mitigations."""
        if self.seen is None:
            return {"skipped": "the attack that they are measured against was skipped"}
        graph = self.eraser.graph_
        posteriors = self.eraser.predict_proba(graph.labelled_test_nodes)
        labels = graph.labels(graph.labelled_test_nodes)
        figures = []
        for guard in CANDIDATES:
            result = attack(
                *self.seen, models=_QUICK, mitigation=guard, informed=True, seed=self.seed
            )
            f1 = float((guard(posteriors).argmax(axis=1) == labels).mean())
            figures.append({"name": str(guard), "auc": result.rates.auc.to_dict(), "f1": f1})
        return {"figures": figures}

    def partition(self) -> dict[str, Any]:
        """Compare the run's own partition with `hash`."""
        eraser, own = self.eraser, self.eraser.partition_.method
        chosen = own if own in PARTITIONERS else eraser.partition
        names = {own: chosen, "hash": "hash"}
        methods = {}
        for name, method in names.items():
            methods[name] = partition_leak(
                eraser.graph_,
                method,
                num_shards=eraser.partition_.num_shards,
                gamma=eraser.gamma,
                delta=eraser.delta,
                seed=eraser.partition_.seed,
                budget=self.budget.share(0.1),
            ).to_dict()
        return {"own": own, "methods": methods}


Make = Callable[[_Work], dict[str, Any]]


def _on(attack: Callable[..., Result], share: float | None = None, **options: Any) -> Make:
    """Make an attack on a run and its graph, within a share of the time where it has one."""

    def make(work: _Work) -> dict[str, Any]:
        within = {} if share is None else {"budget": work.budget.share(share)}
        found = attack(work.eraser, work.eraser.graph_, seed=work.seed, **within, **options)
        return found.to_dict()

    return make


@dataclass(frozen=True)
class Attack:
    """One attack of the audit."""

    section: str  # of the report, by the name that `findings` knows it by
    words: str  # what an operator is told while it is made
    fits: int  # how many times the whole run is trained at the least
    make: Make  # makes it, and returns its figures


_NODES = "attacking: reconstructing forgotten nodes"
# By the name of the task; the runs of any other task are only verified and searched.
ATTACKS: dict[str, tuple[Attack, ...]] = {
    "nodes": (
        Attack("planted", "planting a class and forgetting it", 3, _Work.planted),
        Attack("inversion", "attacking: recovering forgotten edges", 3, _on(inversion_attack)),
        Attack("reconstruction", _NODES, 2, _on(reconstruction_attack, 0.1)),
        Attack("challenge", "challenging with planted edges", 4, _on(challenge_edges)),
        Attack("forgetting", "attacking: the model as it is now", 10, _on(lira, 0.35, runs=128)),
        Attack("edges", "attacking: edges", 9, _on(edge_attack, 0.35)),
        Attack("partition", "attacking: the partition into shards", 0, _Work.partition),
        Attack("membership", "attacking: the model before and after", 12, _Work.membership),
        Attack("mitigations", "measuring what saying less gains", 0, _Work.mitigations),
    ),
    "links": (Attack("links", "attacking: forgotten edges", 0, _Work.links),),
    "graphs": (Attack("graphs", "attacking: forgotten graphs", 1, _on(graph_attack, 1.0)),),
}


def _facts(path: Path, eraser: Eraser) -> dict[str, Any]:
    graph, receipts = eraser.graph_, eraser.receipts_
    f1, tested = None, graph.labelled_test_nodes
    if eraser.classifier is not None and len(tested):
        f1 = eraser.classifier.score(tested)
    forgot = [found for receipt in receipts if any((found := receipt.forgotten).values())]
    kinds = dict.fromkeys([*GRAPH_NAMES, *(kind for found in forgot for kind in found)])
    return {
        "folder": str(path),
        "task": eraser.task.name,
        "graph": graph.name,
        "fingerprint": graph.fingerprint,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "classes": graph.num_classes,
        "train_nodes": len(graph.train_nodes),
        "context_nodes": graph.num_sharded - graph.num_train,
        "test_nodes": len(graph.test_nodes),
        "shards": len(eraser.shards_),
        "shard_nodes": float(np.mean(eraser.partition_.sizes[eraser.partition_.sizes > 0])),
        "partition": eraser.partition_.method,
        "eraser": repr(eraser),
        "engine": eraser.engine_,
        "test_f1": f1,
        "requests": len(forgot),
        "forgotten": {kind: sum(found.get(kind, 0) for found in forgot) for kind in kinds},
        "statement": receipts[-1].statement if receipts else None,
        "reason": receipts[-1].exactness["reason"] if receipts else None,
        "last_receipt": receipts[-1].digest if receipts else None,
    }
