"""Files of requests."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.cli.arguments import parse_edges, parse_ids
from grapheraser.errors import ParameterError
from tests.cli.commands import data, run, snapshot


def test_requests_in_a_file_are_one_batch(own_run: Path, tmp_path: Path) -> None:
    graph = ge.GraphEraser.load(own_run).graph_
    nodes = graph.train_nodes[[1, 5]].tolist()
    rows = [{"nodes": [nodes[0]]}, {"features": [nodes[1]]}]
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    report = data("unlearn", own_run, "--file", file)
    assert report["receipt"]["sequence"] == 1
    assert report["receipt"]["counts"]["features"] == 1


@pytest.mark.parametrize(
    "line",
    ['{"edges": 5}', '{"edges": null}', '{"nodes": [9223372036854775808]}', "[" * 100_000],
)
def test_a_bad_line_of_a_file_is_named_by_its_number(
    own_run: Path, tmp_path: Path, line: str
) -> None:
    before = snapshot(own_run)
    file = tmp_path / "requests.jsonl"
    file.write_text(f"\n{line}\n")
    done = run("unlearn", own_run, "--file", file)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error[GE-011]: {file}:2: ")
    assert snapshot(own_run) == before


def test_ids_are_read_from_the_line_a_file_or_stdin() -> None:
    for text in ("1,2,3", "1, 2 ,3,", "1\n2\n3\n", "1,2\n\n3", '"1",2,3'):
        assert parse_ids(text, "--nodes") == [1, 2, 3]
    assert parse_ids('ada,"Lovelace, B.",7', "--nodes", named=True) == ["ada", "Lovelace, B.", "7"]
    for wrong in ("1,b", "1.5", f"{2**63}", '"1'):
        with pytest.raises(ParameterError, match="--nodes"):
            parse_ids(wrong, "--nodes")


def test_edges_are_pairs_with_a_dash_or_lines_of_two() -> None:
    for text in ("3-17,4-8", "3-17\n4-8", "3,17\n4,8\n", "3,17\n4-8"):
        assert parse_edges(text, "--edges") == [(3, 17), (4, 8)]
    named = [("ada", "bob"), ("x-1", "y-2")]
    assert parse_edges("ada-bob\nx-1,y-2", "--edges", named=True) == named
    for wrong in ("3", "3-4-5", "3,4,5", "3-b", "a-b-c"):
        with pytest.raises(ParameterError, match="--edges"):
            parse_edges(wrong, "--edges")


def test_every_option_takes_a_file_and_stdin(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = ge.GraphEraser.load(own_run).graph_
    one, two, three = graph.train_nodes[[1, 5, 9]].tolist()
    u, v = graph.edges[7].tolist()
    (tmp_path / "ids").write_text(f"{one}\n{two}\n")
    (tmp_path / "edges").write_text(f"{u},{v}\n")
    plan = data("unlearn", own_run, "--dry-run", "--nodes", f"@{tmp_path / 'ids'}")["plan"]
    assert plan["nodes"] == 2
    plan = data("unlearn", own_run, "--dry-run", "--edges", f"@{tmp_path / 'edges'}")["plan"]
    assert plan["edges"] == 1
    plan = data("unlearn", own_run, "--dry-run", "--file", tmp_path / "ids")["plan"]
    assert plan["nodes"] == 2
    for option, text in (("--labels", f"{three}"), ("--file", f'{{"labels": [{three}]}}')):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert data("unlearn", own_run, "--dry-run", option, "-")["plan"]["labels"] == 1
    done = run("unlearn", own_run, "--nodes", "-", "--edges", "-")
    assert "only one option" in done.stderr
    done = run("unlearn", own_run, "--nodes", f"@{tmp_path / 'none'}")
    assert "can't read" in done.stderr
