"""A time-boxed audit of one fitted run: the proofs, the attacks, then the findings in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser import checks
from grapheraser.audit.attacks.asking import state_of
from grapheraser.audit.attacks.challenge import challenge_edges
from grapheraser.audit.attacks.edges import edge_attack
from grapheraser.audit.attacks.inversion import inversion_attack
from grapheraser.audit.attacks.links import link_attack
from grapheraser.audit.attacks.lira import lira
from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.partition_leak import partition_leak
from grapheraser.audit.attacks.planted import plant_and_forget
from grapheraser.audit.attacks.reconstruction import reconstruction_attack
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
from grapheraser.audit.budget import Budget
from grapheraser.audit.findings import FAILED, LEAK, SKIPPED, Finding, findings
from grapheraser.audit.mitigations import CANDIDATES
from grapheraser.audit.residues.forgotten import Forgotten
from grapheraser.audit.residues.search import search_run
from grapheraser.eraser import GraphEraser
from grapheraser.errors import InputError, MissingExtraError
from grapheraser.links import LinkEraser
from grapheraser.links.loading import load_eraser
from grapheraser.partition import PARTITIONERS
from grapheraser.reports.wording import plural
from grapheraser.seeding import derive
from grapheraser.store.results import read_result

FORMAT = "grapheraser-audit-2"
DATA = "audit.json"  # in the folder of a report
_REQUESTS = 80
_QUICK = ("logistic regression", "decision tree")
Say = Callable[[str], None]


@dataclass(frozen=True)
class AuditReport:
    """Everything that an audit found.

    Attributes:
        run: what was audited: folder, configuration, graph, requests so far.
        sections: figures by question.
        findings: the same in words.
        seconds: how long it took.
        minutes: how long it was allowed to take.
        made_at: when it was done, UTC, ISO 8601.
    """

    run: dict[str, Any]
    sections: dict[str, dict[str, Any]]
    findings: tuple[Finding, ...]
    seconds: float
    minutes: float
    made_at: str

    @property
    def passed(self) -> bool:
        """Whether no proof failed; leaks that are measured do not count as failures."""
        return not any(finding.level == FAILED for finding in self.findings)

    @property
    def leaks(self) -> int:
        return sum(finding.level == LEAK for finding in self.findings)

    @property
    def not_run(self) -> tuple[str, ...]:
        """The questions that were not put, each with the reason."""
        return tuple(f"{f.question} {f.measured}" for f in self.findings if f.level == SKIPPED)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "passed": self.passed,
            "leaks": self.leaks,
            "not_run": list(self.not_run),
            "run": self.run,
            "findings": [asdict(finding) for finding in self.findings],
            "sections": self.sections,
            "seconds": self.seconds,
            "minutes": self.minutes,
            "made_at": self.made_at,
        }


def report_folder(run: Path) -> Path:
    """Where the report on a run lies unless another folder is asked for."""
    return run.with_name(f"{run.name}-audit")


def latest_report(run: Path) -> dict[str, Any] | None:
    """The last report on a run, as plain values; None where there is none in its folder."""
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

    Args:
        path: the run's folder.
        minutes: time for the attacks; the proofs take what they need.
        forgotten: what to look for in the files, where the caller knows it.
        seed: of everything that the auditor draws.
        say: told what is being done.
        clock: what tells the time.
        own: parts of the user's own that the run was fitted with, as `GraphEraser.load` takes
            them.
    """
    minutes = checks.real("minutes", "audit", minutes, above=0)
    budget = Budget(60 * minutes, clock)
    eraser = load_eraser(path, **(own or {}))
    sections: dict[str, dict[str, Any]] = {}
    say("retraining from what is left, comparing bit for bit")
    sections["verification"] = eraser.verify().to_dict()
    say("searching the run's files")
    sections["search"] = search_run(path, forgotten).to_dict()
    if isinstance(eraser, LinkEraser):
        say("attacking: forgotten edges")
        sections["links"] = _attempted(
            lambda: link_attack(eraser, seed=seed, budget=budget).to_dict()
        )
    else:
        _attack(_Work(eraser, seed, budget), sections, say)
    return AuditReport(
        run=_facts(path, eraser),
        sections=sections,
        findings=findings(sections),
        seconds=budget.spent,
        minutes=minutes,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _attack(work: _Work, sections: dict[str, dict[str, Any]], say: Say) -> None:
    """Every attack on a run of classes that there is time for."""
    budget = work.budget
    # (section, words, step, how many times the whole run is trained at the least)
    steps: list[tuple[str, str, Callable[[], dict[str, Any]], int]] = [
        ("planted", "planting a class and forgetting it", work.planted, 3),
        ("inversion", "attacking: recovering forgotten edges", work.inversion, 3),
        ("reconstruction", "attacking: reconstructing forgotten nodes", work.reconstruction, 2),
        ("challenge", "challenging with planted edges", work.challenge, 4),
        ("forgetting", "attacking: the model as it is now", work.forgetting, 10),
        ("edges", "attacking: edges", work.edges, 9),
        ("partition", "attacking: the partition into shards", work.partition, 0),
        ("membership", "attacking: the model before and after", work.membership, 12),
        ("mitigations", "measuring what saying less gains", work.mitigations, 0),
    ]
    for name, words, step, fits in steps:
        if fits * work.one_fit > 2 * max(budget.left, 0):
            need = plural(max(1, round((budget.spent + 2 * fits * work.one_fit) / 60)), "minute")
            why = f"there was no time for it; about {need} would do (--minutes)"
            sections[name] = {"skipped": why}
            continue
        say(words)
        sections[name] = _attempted(step)


def _attempted(step: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The figures of an attack, or why it could not be made."""
    try:
        return step()
    except (InputError, MissingExtraError) as error:
        hint = f" ({error.hint})" if error.hint else ""
        return {"skipped": f"{error.message}{hint}"}


@dataclass(eq=False)
class _Work:
    """The attacks on one run, each within its share of the time."""

    eraser: GraphEraser
    seed: int
    budget: Budget
    one_fit: float = 0.0
    seen: tuple[Observations, Observations] | None = None

    def planted(self) -> dict[str, Any]:
        """The planted class; also tells how long the run takes to train."""
        watch = Budget(clock=self.budget.clock)
        result = plant_and_forget(self.eraser.graph_, parameters(self.eraser), seed=self.seed)
        self.one_fit = watch.spent / 3
        return result.to_dict()

    def membership(self) -> dict[str, Any]:
        """Who was forgotten, both versions in sight, by scenario.

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
        """The attacker's run."""
        graph = resplit(self.eraser.graph_, derive(self.seed, "audit", "shadow"))
        return fitted(parameters(self.eraser), graph, derive(self.seed, "audit", "own") >> 1)

    def _observed(
        self, own: GraphEraser, how: str, count: int, budget: Budget
    ) -> tuple[Observations, Observations]:
        """What the attacker sees of their own run, and of the run under attack."""

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
        """The attack on this run once more, through each of the mitigations."""
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
        """The run's own partition, beside `hash`."""
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

    def edges(self) -> dict[str, Any]:
        result = edge_attack(
            self.eraser, self.eraser.graph_, seed=self.seed, budget=self.budget.share(0.35)
        )
        return result.to_dict()

    def inversion(self) -> dict[str, Any]:
        return inversion_attack(self.eraser, self.eraser.graph_, seed=self.seed).to_dict()

    def reconstruction(self) -> dict[str, Any]:
        result = reconstruction_attack(
            self.eraser, self.eraser.graph_, seed=self.seed, budget=self.budget.share(0.1)
        )
        return result.to_dict()

    def challenge(self) -> dict[str, Any]:
        return challenge_edges(self.eraser, self.eraser.graph_, seed=self.seed).to_dict()

    def forgetting(self) -> dict[str, Any]:
        result = lira(
            self.eraser,
            self.eraser.graph_,
            runs=128,
            seed=self.seed,
            budget=self.budget.share(0.35),
        )
        return result.to_dict()


def _facts(path: Path, eraser: GraphEraser | LinkEraser) -> dict[str, Any]:
    graph, receipts = eraser.graph_, eraser.receipts_
    f1, tested = None, graph.labelled_test_nodes
    if isinstance(eraser, GraphEraser) and len(tested):
        f1 = eraser.score(tested)
    forgot = [found for receipt in receipts if any((found := receipt.forgotten).values())]
    return {
        "folder": str(path),
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
        "forgotten": {
            kind: sum(found[kind] for found in forgot)
            for kind in ("nodes", "edges", "features", "labels")
        },
        "statement": receipts[-1].statement if receipts else None,
        "reason": receipts[-1].exactness["reason"] if receipts else None,
        "last_receipt": receipts[-1].digest if receipts else None,
    }
