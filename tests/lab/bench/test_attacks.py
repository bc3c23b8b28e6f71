"""Benchmarks that attack: what the audit measures, in tables."""

from __future__ import annotations

import pytest

from grapheraser.nodes.mitigations import Mitigation
from grapheraser_lab.bench import attacks

pytest.importorskip("sklearn")
pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few configurations."""
    monkeypatch.setattr(attacks, "PARTITIONS", ("hash", "blpa"))
    monkeypatch.setattr(attacks, "POOLED", {"closed-form": {"model": "closed-form"}})
    one = {"closed-form": {"model": "closed-form"}}
    monkeypatch.setattr(attacks, "MEMBERS", one)
    monkeypatch.setattr(attacks, "SEEDED", tuple(one))


def test_members_are_told_before_they_are_forgotten_and_not_after() -> None:
    report = attacks.run(["demo"], configurations=["closed-form"], requests=8, runs=8, epochs=2)
    (row,) = report["rows"]
    looked = row["likelihood"]
    assert looked["before"]["auc"]["value"] > 0.7 > looked["after"]["kept"]["auc"]["value"]
    assert looked["after"]["kept"] == looked["after"]["recut"]  # hash: the same bits
    assert row["informed"]["auc"]["value"] > 0.8
    text = attacks.markdown(report)
    assert "about to be forgotten" in text
    assert text.count("| demo | closed-form |") == 2
    assert "| the same |" in text


def test_what_is_recovered_is_recovered_from_a_run_that_never_had_it() -> None:
    report = attacks.recovery(["demo"], candidates=20, requests=2, epochs=2)
    (row,) = report["rows"]
    assert row["edges"]["same"]
    text = attacks.markdown(report)
    assert text.count("the same, nodes of the highest degree") == 2
    assert "the same answers" in text
    row["edges"]["same"] = False
    assert "other answers" in attacks.markdown(report)


def test_saying_less_tells_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacks, "CANDIDATES", (Mitigation(), Mitigation(labels=1)))
    report = attacks.mitigations(["demo"], requests=8, epochs=2)
    everything, label = (row["auc"]["value"] for row in report["rows"][:2])
    assert label < everything
    assert f"| demo | {Mitigation(labels=1)} |" in attacks.markdown(report)


def test_only_hash_gives_nothing_away() -> None:
    report = attacks.partition(["demo"], candidates=3)
    agreement = {row["method"]: row["agreement"] for row in report["rows"]}
    assert agreement["hash"] == 1 > agreement["blpa"]
    assert "| demo | `hash` | 1.00 |" in attacks.markdown(report)


def test_the_other_attacks_have_tables_too() -> None:
    rows = attacks.leaks(["demo"], requests=6, runs=8, epochs=2)
    assert "| demo | closed-form |" in attacks.markdown(rows)
    rows = attacks.refresh(["demo"], requests=6, epochs=2)
    assert "| demo | closed-form | informed |" in attacks.markdown(rows)
