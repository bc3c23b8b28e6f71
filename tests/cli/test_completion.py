"""Completion of names, as the shell asks for it."""

from __future__ import annotations

import pytest

from grapheraser.aggregation import AGGREGATORS
from grapheraser.cli import main
from grapheraser.models import PRESETS
from grapheraser.partition import PARTITIONERS
from grapheraser_lab.cli.bench import BENCHMARKS
from grapheraser_lab.experiments.catalogue import EXPERIMENTS

CASES = [
    ("fit", "c", {"cora", "citeseer", "cs"}),
    ("fit demo --model ", "", set(PRESETS) | {"sgc", "closed-form"}),
    ("fit demo --partition ", "b", {name for name in PARTITIONERS if name.startswith("b")}),
    ("fit demo --aggregation ", "", set(AGGREGATORS)),
    ("partition demo --method ", "", set(PARTITIONERS)),
    ("recommend ", "dem", {"demo"}),
    ("recommend demo --model ", "gi", {"gin", "gin:paper"}),
    ("experiment ", "", {"list", "all", *EXPERIMENTS}),
    ("experiment utility --datasets ", "pub", {"pubmed"}),
    ("experiment utility --models ", "ml", {"mlp", "mlp:paper"}),
    ("bench ", "lin", {name for name in BENCHMARKS if name.startswith("lin")}),
    ("demo --model ", "sa", {"sage", "sage:paper"}),
]


@pytest.mark.parametrize(("words", "incomplete", "expected"), CASES)
def test_names_are_completed(
    words: str,
    incomplete: str,
    expected: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # What the script that --show-completion prints sets for zsh and the like.
    line = f"grapheraser {words.strip()} {incomplete}"
    monkeypatch.setenv("_GRAPHERASER_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setattr("sys.argv", ["grapheraser"])
    with pytest.raises(SystemExit):
        main([])
    found = {line.split("\t")[0] for line in capsys.readouterr().out.split()}
    assert expected <= found
    assert all(name.startswith(incomplete) for name in found)
