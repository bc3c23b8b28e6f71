"""grapheraser datasets."""

from __future__ import annotations

from tests.cli.commands import data


def test_datasets_lists_the_demo_and_the_papers_five() -> None:
    names = {info["name"] for info in data("datasets")["datasets"]}
    assert {"demo", "demo-large", "cora", "citeseer", "pubmed", "cs", "physics"} <= names
