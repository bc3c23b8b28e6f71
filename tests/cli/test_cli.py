"""The command line, verb by verb."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.cli import main


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object) -> Done:
    """Call the command line in this process, which spares every test the start of Python."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main([str(word) for word in arguments])
    return Done(int(stop.value.code or 0), out.getvalue(), err.getvalue())


def data(*arguments: object) -> Any:
    """What a verb prints with --json."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "run"
    report = data(
        "fit",
        "demo",
        "--shards",
        6,
        "--epochs",
        20,
        "--out",
        path,
        "--partition",
        "random",
        "--aggregation",
        "mean",
    )
    assert report["shards"] == 6
    assert sum(report["shard_sizes"]) == 2160
    return path


@pytest.fixture
def own_run(fitted: Path, tmp_path: Path) -> Path:
    """A copy of the fitted run that a test may change."""
    ge.GraphEraser.load(fitted).save(tmp_path / "run")
    return tmp_path / "run"


def snapshot(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def test_every_verb_explains_itself() -> None:
    listing = run("--help").stdout
    for verb in (
        "demo",
        "datasets",
        "recommend",
        "fit",
        "predict",
        "evaluate",
        "unlearn",
        "verify",
    ):
        assert verb in listing
        assert run(verb, "--help").returncode == 0


def test_datasets_lists_the_demo_and_the_papers_five() -> None:
    names = {info["name"] for info in data("datasets")["datasets"]}
    assert {"demo", "cora", "citeseer", "pubmed", "cs", "physics"} <= names


def test_recommend_ends_with_a_command_that_follows_its_advice() -> None:
    options = ("--model", "mlp", "--shards", 4, "--epochs", 2)
    advice = data("recommend", "demo", *options)
    assert advice["num_shards"] == 4
    assert len(advice["reasons"]) == 4
    *_, command = run("recommend", "demo", *options).stdout.strip().split("\n")
    assert command.startswith(f"grapheraser fit demo --model mlp --partition {advice['partition']}")
    assert ("--wide-expert" in command) == (advice["global_expert"] == "wide")


def test_predict_says_what_the_library_says(fitted: Path) -> None:
    eraser = ge.GraphEraser.load(fitted)
    nodes = [int(node) for node in eraser.graph_.test_nodes[:5]]
    predictions = data("predict", fitted, "--nodes", ",".join(map(str, nodes)))["predictions"]
    assert [entry["node"] for entry in predictions] == nodes
    assert [entry["class"] for entry in predictions] == eraser.predict(nodes).tolist()


def test_predict_can_say_less(fitted: Path) -> None:
    node = int(ge.GraphEraser.load(fitted).graph_.test_nodes[0])
    options = ("--nodes", node, "--top", 2, "--decimals", 1)
    (entry,) = data("predict", fitted, *options)["predictions"]
    kept = [p for p in entry["posterior"] if p > 0]
    assert len(kept) <= 2
    assert all(round(p, 1) == pytest.approx(p, abs=1e-6) for p in kept)


def test_predict_can_say_why(fitted: Path) -> None:
    node = int(ge.GraphEraser.load(fitted).graph_.test_nodes[0])
    (entry,) = data("predict", fitted, "--nodes", node, "--explain")["predictions"]
    weights = [member["weight"] for member in entry["explanation"]["members"]]
    assert sum(weights) == pytest.approx(1.0, abs=1e-6)
    assert "shard" in run("predict", fitted, "--nodes", node, "--explain").stdout


@pytest.mark.parametrize(
    "less", [("--labels", 1), ("--top", 1), ("--decimals", 1), ("--temperature", 2)]
)
def test_saying_why_never_says_more_than_the_answer_may(
    fitted: Path, less: tuple[str, int]
) -> None:
    done = run("predict", fitted, "--nodes", 1, "--explain", *less)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: --explain says what every member answers")


def test_evaluate_says_what_the_library_says(fitted: Path) -> None:
    eraser = ge.GraphEraser.load(fitted)
    report = data("evaluate", fitted)
    assert report["test_f1"] == eraser.score(eraser.graph_.test_nodes)


def test_unlearn_then_verify(own_run: Path) -> None:
    graph = ge.GraphEraser.load(own_run).graph_
    node, edge = int(graph.train_nodes[7]), graph.edges[100].tolist()
    report = data("unlearn", own_run, "--nodes", node, "--edges", f"{edge[0]}-{edge[1]}")
    assert report["receipt"]["counts"]["nodes"] == 1
    assert report["digest"] == ge.GraphEraser.load(own_run).receipts_[0].digest
    assert not ge.GraphEraser.load(own_run).graph_.contains([node])[0]
    verified = data("verify", own_run)
    assert verified["identical"]
    assert verified["receipts"] == 1
    assert "verified: bit-identical" in run("verify", own_run).stdout


def test_requests_in_a_file_are_one_batch(own_run: Path, tmp_path: Path) -> None:
    graph = ge.GraphEraser.load(own_run).graph_
    nodes = graph.train_nodes[[1, 5]].tolist()
    rows = [{"nodes": [nodes[0]]}, {"features": [nodes[1]]}]
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    report = data("unlearn", own_run, "--file", file)
    assert report["receipt"]["sequence"] == 1
    assert report["receipt"]["counts"]["features"] == 1


def test_a_dry_run_changes_nothing(own_run: Path) -> None:
    before = snapshot(own_run)
    node = int(ge.GraphEraser.load(own_run).graph_.train_nodes[0])
    plan = data("unlearn", own_run, "--nodes", node, "--dry-run")["plan"]
    assert len(plan["retrain"]) == 1
    assert snapshot(own_run) == before


def test_verify_fails_on_altered_weights(own_run: Path) -> None:
    eraser = ge.GraphEraser.load(own_run)
    shard = next(iter(eraser.shards_.values()))
    name, tensor = next(iter(shard.tensors.items()))
    altered = tensor.copy()
    altered.ravel()[0] += 1
    shard.tensors[name] = altered
    eraser.save(own_run)
    done = run("verify", own_run)
    assert done.returncode == 1
    assert "NOT identical" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("unlearn", "RUN", "--nodes", "999999"), "UnknownNodeError"),
        (("unlearn", "RUN", "--edges", "0-0"), "UnknownEdgeError"),
        (("unlearn", "RUN", "--edges", "0:1"), "ParameterError"),
        (("unlearn", "RUN", "--nodes", "one"), "ParameterError"),
        (("unlearn", "RUN"), "NothingToForgetError"),
        (("unlearn", "RUN", "--file", "no-such-file"), "ParameterError"),
        (("unlearn", "RUN", "--nodes", "9223372036854775808"), "ParameterError"),
        (("unlearn", "RUN", "--edges", "1-9223372036854775808"), "ParameterError"),
        (("predict", "RUN", "--nodes", "1,9223372036854775808"), "ParameterError"),
        (("predict", "RUN", "--nodes", "1", "--decimals", "400"), "ParameterError"),
        (("bench", "engines", "--models", "nope"), "ParameterError"),
        (("bench", "unlearn", "--models", "sgc"), "ParameterError"),
        (("demo", "--out", "NEW", "--requests", "0"), "ParameterError"),
        (("demo", "--out", "NEW", "--requests", "-1"), "ParameterError"),
        (("demo", "--out", "NEW", "--requests", "2000"), "ParameterError"),
        (("demo", "--out", "NEW", "--requests", "5000"), "ParameterError"),
        (("predict", "RUN", "--nodes", "999999"), "UnknownNodeError"),
        (("predict", "no-such-run", "--nodes", "1"), "RunNotFoundError"),
        (("unlearn", "no-such-run", "--nodes", "1"), "RunNotFoundError"),
        (("unlearn", "EMPTY", "--nodes", "1"), "RunNotFoundError"),
        (("fit", "no-such-graph", "--out", "NEW"), "UnknownDatasetError"),
        (("partition", "demo", "--draw", "picture.docx"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--shards", "0"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--shards", "2161"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--model", "resnet"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--partition", "scissors"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--aggregation", "dice"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--device", "cuda:7"), "ParameterError"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    own_run: Path, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    before = snapshot(own_run)
    places = {"RUN": own_run, "NEW": tmp_path / "new", "EMPTY": tmp_path / "empty"}
    places["EMPTY"].mkdir()
    done = run(*(places.get(word, word) for word in arguments), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["type"] == error
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert snapshot(own_run) == before
    assert not (tmp_path / "new").exists()
    assert not snapshot(tmp_path / "empty")


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
    assert done.stderr.startswith(f"error: {file}:2: ")
    assert snapshot(own_run) == before


def test_the_gpu_benchmark_needs_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    done = run("bench", "cuda")
    assert done.returncode == 1
    assert done.stderr.startswith("error: benchmark 'cuda' needs a GPU")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", [("datasets",), ("predict", "no-such-run", "--nodes", "1", "--json")]
)
def test_output_that_nobody_takes_ends_without_a_traceback(
    words: tuple[str, ...], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = [sys.executable, "-m", "grapheraser", *words]
    closed, writing = os.pipe()
    os.close(closed)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_an_error_of_the_system_is_not_taken_for_lost_output(
    fitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("grapheraser.eraser.estimator.load_run", fails)
    done = run("evaluate", fitted)
    assert done.returncode == 1
    assert "No locks available" in done.stderr
    assert "output" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_the_output_is_said() -> None:
    command = [sys.executable, "-m", "grapheraser", "datasets"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "error: the output could not be written: No space left on device." in done.stderr
    assert "Traceback" not in done.stderr


def test_fit_finds_out_about_its_folder_before_it_trains(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letter").write_text("dear")
    data("unlearn", own_run, "--nodes", int(ge.GraphEraser.load(own_run).graph_.train_nodes[0]))
    before = snapshot(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(ge.GraphEraser, "fit", lambda *_: pytest.fail("it trained"))
        for out, error in (
            (tmp_path, "StoreError"),
            (tmp_path / "letter" / "run", "StoreError"),
            (own_run, "ReceiptLossError"),
        ):
            done = run("fit", "demo", "--out", out, "--json")
            assert done.returncode == 1
            assert json.loads(done.stdout)["error"]["type"] == error
    assert "--replace" in done.stderr
    assert snapshot(tmp_path) == before
    data("fit", "demo", "--shards", 2, "--epochs", 1, "--out", own_run, "--replace")
    assert ge.GraphEraser.load(own_run).receipts_ == ()


def test_verify_fails_on_files_that_the_run_does_not_name(own_run: Path) -> None:
    assert data("verify", own_run)["strays"] == []
    old = next(own_run.glob("graph-*")).read_bytes()
    node = int(ge.GraphEraser.load(own_run).graph_.train_nodes[0])
    data("unlearn", own_run, "--nodes", node)
    left = "graph-0123456789abcdef0123.npz"
    (own_run / left).write_bytes(old)
    done = run("verify", own_run)
    assert done.returncode == 1
    assert "verified: bit-identical" in done.stdout
    assert f"stray: {left}" in done.stderr
    assert "hint: delete them" in done.stderr
    done = run("verify", own_run, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["strays"] == [left]
    assert (own_run / left).exists()
    run("unlearn", own_run, "--nodes", 999999)
    assert not (own_run / left).exists(), "also a request that fails clears away"
    assert run("verify", own_run).returncode == 0


def test_a_repeated_request_is_told_so(own_run: Path) -> None:
    node = int(ge.GraphEraser.load(own_run).graph_.test_nodes[0])
    data("unlearn", own_run, "--nodes", node)
    before = snapshot(own_run)
    done = run("unlearn", own_run, "--nodes", node, "--json")
    assert json.loads(done.stdout)["error"]["type"] == "AlreadyForgottenError"
    assert snapshot(own_run) == before


def test_it_runs_as_a_module_of_its_own(fitted: Path) -> None:
    command = [sys.executable, "-m", "grapheraser", "predict", str(fitted), "--nodes", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: '--nodes'")


@pytest.mark.slow
def test_the_demo_ends_in_its_verdict(tmp_path: Path, small: ge.Graph) -> None:
    earlier = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    earlier.unlearn(ge.Nodes(small.train_nodes[:1]))
    earlier.save(tmp_path / "report" / "run")
    done = run("demo", "--out", tmp_path / "report", "--requests", 3)
    assert done.returncode == 0, done.stderr
    assert "verified: bit-identical" in done.stdout.splitlines()[-1]
    page = (tmp_path / "report" / "index.html").read_text()
    assert "verified: bit-identical" in page
    assert page.count("<img") == 3
    assert "http" not in page.replace("http-equiv", "")
