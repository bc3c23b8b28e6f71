"""grapheraser partition."""

from __future__ import annotations

from tests.cli.commands import data, run


def test_the_context_says_how_many_nodes_are_in_shards() -> None:
    options = ("partition", "demo", "--method", "hash", "--shards", 4, "--no-draw")
    assert sum(data(*options)["sizes"]) == 2160
    assert sum(data(*options, "--context", "all")["sizes"]) == 2700
    assert "'context'" in run(*options, "--context", "some").stderr
    assert "has no public split" in run(*options, "--split", "public").stderr
