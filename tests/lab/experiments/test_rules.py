"""Every rule is true on an example and false on a counter-example."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from grapheraser_lab.experiments.catalogue import RULES
from grapheraser_lab.experiments.collapse import Standing
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.means import Mean, mean_of
from grapheraser_lab.framework.rules import FAILS, HOLDS, NOISY, UNTESTED, Claim

MODELS = paper.MODELS
SMALL, LARGE = ("cora", "citeseer"), ("pubmed", "cs", "physics")


def fig(value: float, *, runs: int = 5, tested: int = 1000, collapsed: bool = False) -> Mean:
    """A figure that hardly moves from run to run; never twice by the same amounts."""
    wobble = (0.0, 0.002, -0.001, 0.001, -0.002)
    found = mean_of({run: value * (1 + 0.2 * wobble[run % 5]) for run in range(runs)}, tested)
    assert found is not None
    return Mean(found.mean, found.std, runs, tested, found.by_run, collapsed)


def table(
    values: dict[tuple[str, str], float], datasets: tuple[str, ...] = paper.DATASETS
) -> dict[tuple[str, str, str, str], Mean]:
    """The same figures, by partition and aggregation, for every data set and model."""
    return {(d, m, *rest): fig(v) for d in datasets for m in MODELS for rest, v in values.items()}


def partitions(
    scratch: float, random: float, blpa: float, bekm: float, datasets: Any = paper.DATASETS
) -> dict[tuple[str, str, str, str], Mean]:
    values = {"random": random, "blpa": blpa, "bekm": bekm}
    return table(
        {("scratch", "mean"): scratch, **{(p, "learned"): v for p, v in values.items()}}, datasets
    )


def chosen(gcn_blpa: float, gcn_bekm: float, blpa: float, bekm: float) -> Any:
    found = {}
    for d in paper.DATASETS:
        for m in MODELS:
            one, other = (gcn_blpa, gcn_bekm) if m == "gcn" else (blpa, bekm)
            found[d, m, "blpa", "learned"] = fig(one)
            found[d, m, "bekm", "learned"] = fig(other)
    return found


def aggregations(mean: float, majority: float, learned: float) -> Any:
    values = {"mean": mean, "majority": majority, "learned": learned}
    return table({(p, a): v for p in ("random", "blpa", "bekm") for a, v in values.items()})


def gains(by_model: dict[str, float], by_partition: dict[str, float]) -> Any:
    """F1 with LBAggr above the mean, by what the model and the partition add."""
    return {
        (d, m, p, a): fig(0.5 + (more + extra if a == "learned" else 0.0))
        for d in SMALL
        for m, more in by_model.items()
        for p, extra in by_partition.items()
        for a in ("mean", "learned")
    }


def times(seconds: dict[str, float], slow: dict[str, float] | None = None) -> Any:
    """Scratch takes 1 s, times a factor of the model or the data set; shards what is said."""
    factors = slow or {}
    return {
        (d, m, p): fig((factors.get(d, 1.0) * factors.get(m, 1.0)) if p == "scratch" else s)
        for d in paper.DATASETS
        for m in MODELS
        for p, s in {"scratch": 1.0, **seconds}.items()
    }


def by_dataset(**seconds: float) -> Any:
    return {(d, m.replace("_", "-")): fig(s) for d in paper.DATASETS for m, s in seconds.items()}


def curve(series: str, *values: tuple[float, float], models: tuple[str, ...] = MODELS) -> Any:
    return {(d, m, series, x): fig(y) for d in SMALL for m in models for x, y in values}


def aucs(**columns: float) -> Any:
    names = {"one": "A_I, 1 node", "kept": "A_I", "recut": "A_II", "new": "A_II, new seed"}
    return {(d, m, names[c]): fig(v) for d in SMALL for m in MODELS for c, v in columns.items()}


def correlated(r: float) -> Any:
    return {("cora", p): fig(r, tested=0) for p in ("blpa", "bekm")}


def claim(rule: str, verdict: str) -> Claim:
    return Claim(rule, "s", "t", verdict, "e", "j")


def standings(entropy: float, *, collapsed: bool) -> Any:
    f1 = fig(0.3 if collapsed else 0.8, collapsed=collapsed)
    cell = Standing(f1, 0.3, 0.99 if collapsed else 0.3, entropy, 2.5)
    return {("cora", m, "bekm"): cell for m in MODELS}


def links(closed: tuple[float, float], encoder: float) -> Any:
    found = {}
    for what in ("nodes", "edges"):
        for share, value in zip((0.0, 0.1), closed, strict=True):
            found["cora", what, "closed-form", share] = fig(value)
            found["cora", what, "scratch", share] = fig(encoder)
    return found


def shards(first: float, last: float, *, gcn: float | None = None) -> Any:
    return {
        ("physics", m, "blpa", k): fig(first if k == 2 else gcn if m == "gcn" and gcn else last)
        for m in MODELS
        for k in (2.0, 100.0)
    }


def advised(model: str) -> str:
    return "blpa" if model == "gcn" else "bekm"


# By rule: figures on which it holds, and figures on which it does not.
EXAMPLES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "utility/over-random": (
        (partitions(0.9, 0.5, 0.7, 0.6), "learned"),
        (partitions(0.9, 0.5, 0.51, 0.5), "learned"),
    ),
    "utility/random-comparable": (
        (partitions(0.9, 0.85, 0.86, 0.8), "learned"),
        (partitions(0.9, 0.6, 0.86, 0.8), "learned"),
    ),
    "utility/comparable-to-scratch": (
        (partitions(0.8, 0.5, 0.79, 0.79), "learned", advised),
        (partitions(0.8, 0.5, 0.7, 0.6), "learned", advised),
    ),
    "utility/choice": (
        (chosen(0.8, 0.6, 0.6, 0.8), "learned"),
        (chosen(0.6, 0.8, 0.8, 0.6), "learned"),
    ),
    "utility/above-scratch": (
        (partitions(0.7, 0.5, 0.7, 0.72), "learned"),
        (partitions(0.8, 0.5, 0.7, 0.72), "learned"),
    ),
    "utility/62.5-percent": (
        (partitions(0.9, 0.4, 0.7, 0.5), "learned"),
        (partitions(0.9, 0.5, 0.7, 0.6), "learned"),
    ),
    "utility/closest-to-scratch": (
        (partitions(0.8, 0.5, 0.79, 0.7), "blpa", "learned"),
        (partitions(0.8, 0.5, 0.7, 0.7), "blpa", "learned"),
    ),
    "lbaggr/improves": (
        (aggregations(0.6, 0.5, 0.7), "learned", "mean"),
        (aggregations(0.6, 0.5, 0.601), "learned", "mean"),
    ),
    "lbaggr/majority-worst": (
        (aggregations(0.6, 0.5, 0.7), "learned", "mean"),
        (aggregations(0.6, 0.65, 0.7), "learned", "mean"),
    ),
    "lbaggr/models": (
        (gains({"gcn": 0.2, "gat": 0.1, "gin": 0.01, "sage": 0.1}, {"blpa": 0}), "learned", "mean"),
        (gains({"gcn": 0.01, "gat": 0.1, "gin": 0.2, "sage": 0.1}, {"blpa": 0}), "learned", "mean"),
    ),
    "lbaggr/partitions": (
        (gains({"gcn": 0.1}, {"random": 0, "blpa": 0.1, "bekm": 0}), "learned", "mean"),
        (gains({"gcn": 0.0}, {"random": 0, "blpa": 0, "bekm": 0}), "learned", "mean"),
    ),
    "lbaggr/93-percent": (
        (aggregations(0.3, 0.3, 0.6), "learned", "mean"),
        (aggregations(0.5, 0.3, 0.6), "learned", "mean"),
    ),
    "lbaggr/112-percent": (
        (aggregations(0.5, 0.2, 0.6), "learned", "mean"),
        (aggregations(0.3, 0.5, 0.6), "learned", "mean"),
    ),
    "edges/same-conclusions": (
        ([claim("a", HOLDS), claim("b", FAILS)], [claim("a", HOLDS), claim("b", FAILS)]),
        ([claim("a", HOLDS), claim("b", FAILS)], [claim("a", FAILS), claim("b", HOLDS)]),
    ),
    "edges/f1-as-before": (
        ({("cora", "gcn", "blpa"): fig(0.7)}, {("cora", "gcn", "blpa"): fig(0.701)}),
        ({("cora", "gcn", "blpa"): fig(0.7)}, {("cora", "gcn", "blpa"): fig(0.65)}),
    ),
    "mlp/below": (
        ({("cora", "mlp"): fig(0.7), ("cora", "gcn"): fig(0.8)},),
        ({("cora", "mlp"): fig(0.7), ("cora", "gcn"): fig(0.71)},),
    ),
    "mlp/adequate": (
        ({("cs", "mlp"): fig(0.9), ("cs", "gcn"): fig(0.91)},),
        ({("cs", "mlp"): fig(0.8), ("cs", "gcn"): fig(0.91)},),
    ),
    "guideline/advice": (
        (
            {
                ("cora", "gcn", "scratch"): fig(0.8),
                ("cora", "mlp", "scratch"): fig(0.6),
                ("cora", "gcn", "blpa"): fig(0.75),
                ("cora", "gcn", "random"): fig(0.5),
            },
        ),
        (
            {
                ("cora", "gcn", "scratch"): fig(0.8),
                ("cora", "mlp", "scratch"): fig(0.6),
                ("cora", "gcn", "blpa"): fig(0.5),
                ("cora", "gcn", "random"): fig(0.75),
            },
        ),
    ),
    "samples/comparable": (
        (table({("bekm", "mean"): 0.5, ("bekm", "10%"): 0.7, ("bekm", "all"): 0.71}),),
        (table({("bekm", "mean"): 0.5, ("bekm", "10%"): 0.6, ("bekm", "all"): 0.71}),),
    ),
    "samples/blpa": (
        (table({("blpa", "mean"): 0.5, ("blpa", "1000"): 0.7, ("blpa", "all"): 0.71}),),
        (table({("blpa", "mean"): 0.5, ("blpa", "1000"): 0.6, ("blpa", "all"): 0.71}),),
    ),
    "partitioners/k-means-best": (
        ({("cora", "gat", m): fig(v) for m, v in (("bekm", 0.8), ("blpa", 0.7), ("metis", 0.6))},),
        ({("cora", "gat", m): fig(v) for m, v in (("bekm", 0.7), ("blpa", 0.7), ("metis", 0.8))},),
    ),
    "partitioners/hungarian-similar": (
        ({("cora", "gat", "bekm"): fig(0.8), ("cora", "gat", "bekm-hungarian"): fig(0.805)},),
        ({("cora", "gat", "bekm"): fig(0.7), ("cora", "gat", "bekm-hungarian"): fig(0.8)},),
    ),
    "partitioners/lp-comparable": (
        ({("cora", "gat", "blpa"): fig(0.8), ("cora", "gat", "blpa-lp"): fig(0.805)},),
        ({("cora", "gat", "blpa"): fig(0.7), ("cora", "gat", "blpa-lp"): fig(0.8)},),
    ),
    "partitioners/gcn-communities": (
        (
            {
                ("cora", "gcn", m): fig(v)
                for m, v in (("blpa", 0.8), ("blpa-lp", 0.8), ("metis", 0.7))
            },
        ),
        (
            {
                ("cora", "gcn", m): fig(v)
                for m, v in (("blpa", 0.8), ("blpa-lp", 0.6), ("metis", 0.7))
            },
        ),
    ),
    "partition-cost/blpa-lp": (
        (by_dataset(blpa=1.0, blpa_lp=3.0),),
        (by_dataset(blpa=3.0, blpa_lp=1.0),),
    ),
    "partition-cost/hungarian": (
        ({n: (fig(1.0, tested=0), fig(30.0, tested=0)) for n in (240, 480, 960)},),
        ({n: (fig(1.0, tested=0), fig(3.0, tested=0)) for n in (240, 480, 960)},),
    ),
    "partition-cost/hungarian-scales": (
        ({n: (fig(1.0), fig(n**3 / 1e9)) for n in (240, 480, 960)},),
        ({n: (fig(1.0), fig(n**1.2 / 1e4)) for n in (240, 480, 960)},),
    ),
    "partition-cost/metis": (
        (by_dataset(blpa=1.0, metis=1.5),),
        (by_dataset(blpa=1.5, metis=1.0),),
    ),
    "cost/partition": (
        (by_dataset(random=0.1, blpa=1.0, bekm=2.0),),
        (by_dataset(random=1.5, blpa=1.0, bekm=2.0),),
    ),
    "cost/prediction": (
        ({("cora", "gcn"): 1.0}, {("cora", "gcn"): 2.0}),
        ({("cora", "gcn"): 1.0}, {("cora", "gcn"): 50.0}),
    ),
    "cost/prediction-negligible": (({("cora", "gcn"): 0.005},), ({("cora", "gcn"): 0.05},)),
    "cost/relearning": (
        ({("cora", "gcn"): 0.01}, {("cora", "gcn"): 1.0}),
        ({("cora", "gcn"): 0.7}, {("cora", "gcn"): 1.0}),
    ),
    "efficiency/faster": ((times({"blpa": 0.1}),), (times({"blpa": 0.9}),)),
    "efficiency/range": ((times({"blpa": 0.01}),), (times({"blpa": 0.9}),)),
    "efficiency/larger": (
        (times({"blpa": 0.1}, {"pubmed": 5.0, "cs": 5.0, "physics": 9.0}),),
        (times({"blpa": 0.1}, {"cora": 5.0}),),
    ),
    "efficiency/models": (
        (times({"blpa": 0.1}),),
        (times({"blpa": 0.1}, {"sage": 9.0}),),
    ),
    "efficiency/as-random": (
        (times({"random": 0.1, "blpa": 0.11, "bekm": 0.12}),),
        (times({"random": 0.1, "blpa": 0.3, "bekm": 0.3}),),
    ),
    "efficiency/edges": (
        ([claim("a", HOLDS)], [claim("a", HOLDS)]),
        ([claim("a", HOLDS)], [claim("a", FAILS)]),
    ),
    "attack/guessing": (
        (aucs(kept=0.51, recut=0.5), "A_I", "A_II"),
        (aucs(kept=0.9, recut=0.8), "A_I", "A_II"),
    ),
    "attack/extra": ((aucs(kept=0.71, recut=0.7),), (aucs(kept=0.9, recut=0.5),)),
    "attack/new-seed": ((aucs(new=0.5),), (aucs(new=0.8),)),
    "attack/one-node": ((aucs(one=0.9),), (aucs(one=0.5),)),
    "importance/better-higher": ((correlated(0.6),), (correlated(0.05),)),
    "tsne/one-of-similar": ((correlated(-0.6),), (correlated(-0.07),)),
    "structure/gain": (
        ({("cora", "gcn", "blpa"): fig(-0.6, tested=0)},),
        ({("cora", "gcn", "blpa"): fig(0.6, tested=0)},),
    ),
    "robustness/ten-percent": (
        (curve("bekm, uniform", (0.0, 0.8), (0.05, 0.8), (0.1, 0.79)),),
        (curve("bekm, uniform", (0.0, 0.8), (0.05, 0.7), (0.1, 0.6)),),
    ),
    "robustness/half": (
        (curve("bekm, uniform", (0.0, 0.8), (0.5, 0.6)),),
        (curve("bekm, uniform", (0.0, 0.8), (0.5, 0.8)),),
    ),
    "robustness/distribution": (
        ({**curve("b, uniform", (0.1, 0.8)), **curve("b, non-uniform", (0.1, 0.79))},),
        ({**curve("b, uniform", (0.1, 0.8)), **curve("b, non-uniform", (0.1, 0.6))},),
    ),
    "shards/time": (
        (curve("blpa", (2, 3.0), (5, 2.0), (10, 1.0)),),
        (curve("blpa", (2, 1.0), (5, 2.0), (10, 3.0)),),
    ),
    "shards/f1": ((shards(0.90, 0.87),), (shards(0.90, 0.60),)),
    "shards/gcn": ((shards(0.9, 0.88, gcn=0.6),), (shards(0.9, 0.6, gcn=0.88),)),
    "delta/slight": (
        (curve("blpa", (0.0, 0.8), (0.5, 0.79)),),
        (curve("blpa", (0.0, 0.8), (0.5, 0.6)),),
    ),
    "community/f1": (
        (curve("blpa", (0.0, 0.8), (1.0, 0.799)),),
        (curve("blpa", (0.0, 0.8), (1.0, 0.7)),),
    ),
    "community/few-shards": (
        ({("cora", "blpa"): fig(0.1, tested=0)},),
        ({("cora", "blpa"): fig(0.8, tested=0)},),
    ),
    "convergence/zero": (
        ({("cora", "blpa"): {0: [0.5, 0.0], 1: [0.5, 0.001]}},),
        ({("cora", "blpa"): {0: [0.5, 0.2], 1: [0.5, 0.201]}},),
    ),
    "shard-sizes/unequal": (
        ({("cora", "lpa"): ([100, 1, 1, 1], None)},),
        ({("cora", "lpa"): ([26, 25, 25, 24], None)},),
    ),
    "shard-sizes/balanced": (
        ({("cora", "blpa"): ([10, 9], 10)},),
        ({("cora", "blpa"): ([12, 7], 10)},),
    ),
    "lpa-view/unequal": (([100, 5, 4, 3],), ([6, 5, 4, 3],)),
    "collapse/pure-shards": (
        ({**standings(0.2, collapsed=True)},),
        ({**standings(0.2, collapsed=False)},),
    ),
    "insertion/as-good": (
        ({("cora", "gcn", "blpa", s): fig(v) for s, v in (("after", 0.8), ("fresh", 0.805))},),
        ({("cora", "gcn", "blpa", s): fig(v) for s, v in (("after", 0.7), ("fresh", 0.8))},),
    ),
    "links/little-lost": ((links((0.95, 0.945), 0.9),), (links((0.95, 0.8), 0.9),)),
    "links/as-good": ((links((0.95, 0.945), 0.9),), (links((0.8, 0.8), 0.9),)),
}


def test_every_rule_has_an_example_and_a_counter_example() -> None:
    assert set(EXAMPLES) == set(RULES)


@pytest.mark.parametrize("key", sorted(EXAMPLES))
def test_a_rule_is_true_on_its_example_and_false_on_its_counter_example(key: str) -> None:
    rule, (example, counter_example) = RULES.get(key), EXAMPLES[key]
    (true,), (false,) = rule(*example), rule(*counter_example)
    if rule.untested:
        assert {true.verdict, false.verdict} == {UNTESTED}
        assert true.judgement != false.judgement
    else:
        assert true.verdict == HOLDS, true
        assert false.verdict == FAILS, false
    assert true.evidence
    assert true.evidence.endswith(".")


DECIDED_BY_NOISE = (
    "utility/over-random",
    "utility/random-comparable",
    "mlp/below",
    "samples/comparable",
    "attack/guessing",
    "robustness/ten-percent",
    "delta/slight",
    "importance/better-higher",
)


@pytest.mark.parametrize("key", DECIDED_BY_NOISE)
def test_noise_decides_nothing(key: str) -> None:
    """Half of the figures noisy in one direction, half in the other: nothing is paired."""
    example = EXAMPLES[key][0]
    figures = {
        k: mean_of({0: v.mean + sign * 0.3, 1: v.mean - sign * 0.3}, v.tested)
        for (k, v), sign in zip(example[0].items(), [1, -1, -2, 3] * len(example[0]), strict=False)
    }
    (claim_,) = RULES.get(key)(figures, *example[1:])
    assert claim_.verdict == NOISY


def test_a_statement_is_the_papers_sentence_and_every_test_is_in_words() -> None:
    for key in RULES:
        rule = RULES.get(key)
        assert rule.statement.endswith("."), key
        assert rule.test.endswith("."), key
        assert inspect.signature(rule.find).parameters, key


def test_vacuous_cases_are_no_cases() -> None:
    """Where LBAggr is the mean, no sample can matter."""
    noop = table({("bekm", "mean"): 0.7, ("bekm", "10%"): 0.7, ("bekm", "all"): 0.7})
    assert RULES.get("samples/comparable")(noop) == []


def test_a_no_op_improves_nothing() -> None:
    noop = aggregations(0.6, 0.5, 0.6005)
    for key in ("lbaggr/improves", "lbaggr/93-percent", "lbaggr/partitions"):
        (found,) = RULES.get(key)(noop, "learned", "mean")
        assert found.verdict == FAILS, key


def test_too_few_runs_are_not_another_conclusion() -> None:
    before, after = [claim("a", FAILS), claim("b", HOLDS)], [claim("a", NOISY), claim("b", HOLDS)]
    found = RULES.get("edges/same-conclusions").find(before, after)
    assert [case.true for case in found.cases] == [None, True]
    assert found.figures == "Differently judged: none."
