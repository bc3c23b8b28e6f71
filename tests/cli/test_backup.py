"""grapheraser backup and restore."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.queue.requests import RequestContent
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings
from tests.cli.commands import data, run


def test_who_was_erased_since_the_backup_does_not_come_back(
    small: ge.Graph, tmp_path: Path
) -> None:
    path, backup = tmp_path / "run", tmp_path / "backup"
    ge.GraphEraser(num_shards=2, epochs=1).fit(small).save(path)
    service = Service.opened(path, Settings(window=0.0))
    made = data("backup", path, backup)
    assert (made["run"], made["size"], made["queue"]) == (service.queue.run, 0, True)
    assert run("backup", path, tmp_path / "other").stdout.startswith("backup ")
    node = int(small.train_nodes[0])
    service.queue.submit(RequestContent(nodes=(node,)))
    assert service.worker.round()
    service.database.dispose()
    shutil.rmtree(path)
    done = data("restore", backup, path)
    assert done["erased"] == 1
    assert not ge.GraphEraser.load(path).graph_.contains([node]).any()
    refused = run("restore", backup, path)
    assert refused.returncode == 1
    assert f"{path}: there is a run already" in refused.stderr
    assert "hint: overwrite it with --replace" in refused.stderr
    again = run("restore", backup, path, "--replace")
    assert again.returncode == 0
    assert "1 once more" in again.stdout


def test_a_backup_without_its_database_is_not_restored_by_mistake(
    small: ge.Graph, tmp_path: Path
) -> None:
    path, backup = tmp_path / "run", tmp_path / "backup"
    ge.GraphEraser(num_shards=2, epochs=1).fit(small).save(path)
    Service.opened(path).database.dispose()
    data("backup", path, backup)
    shutil.rmtree(tmp_path / "run.service")
    refused = run("restore", backup, path, "--replace")
    assert refused.returncode == 1
    assert "it lies beside the folder that the run was served from" in refused.stderr
    assert "--lost-database" in refused.stderr
    done = run("restore", backup, path, "--replace", "--lost-database")
    assert done.returncode == 0
    assert "have to ask again" in done.stderr


def test_a_checkpoint_of_before_a_restore_says_that_the_log_is_a_new_one(
    small: ge.Graph, tmp_path: Path
) -> None:
    pytest.importorskip("cryptography", reason="needs the extra 'sign'")
    path, backup, kept = tmp_path / "run", tmp_path / "backup", tmp_path / "checkpoint"
    ge.GraphEraser(num_shards=2, epochs=1).fit(small).save(path)
    Service.opened(path).database.dispose()
    data("unlearn", path, "--nodes", small.train_nodes[0])
    data("receipts", path, "--checkpoint", "--out", kept)
    data("backup", path, backup)
    refused = run("restore", backup, path)
    assert "hint: overwrite it with --replace" in refused.stderr, "also where there are receipts"
    data("restore", backup, path, "--replace")
    for node in small.train_nodes[1:3]:  # with no receipt in the new log, and with one
        done = run("verify", path, "--checkpoint", kept)
        assert done.returncode == 1
        assert "verified: bit-identical" in done.stdout
        assert "checkpoint: the log is a new one" in done.stdout
        assert "hint: a restore from a backup begins a new log" in done.stderr
        data("unlearn", path, "--nodes", node)


def test_the_database_of_the_settings_is_the_one_that_is_backed_up_and_asked(
    small: ge.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, config = tmp_path / "run", tmp_path / "service.toml"
    ge.GraphEraser(num_shards=2, epochs=1).fit(small).save(path)
    url = sqlite_url(tmp_path / "elsewhere.db")
    config.write_text(f'database = "{url}"\n')
    service = Service.opened(path, Settings(database=url, window=0.0))
    data("backup", path, tmp_path / "backup", "--config", config)
    service.queue.submit(RequestContent(nodes=(int(small.train_nodes[0]),)))
    assert service.worker.round()
    service.database.dispose()
    monkeypatch.setenv("GRAPHERASER_SERVICE_DATABASE", url)
    assert data("restore", tmp_path / "backup", path, "--replace")["erased"] == 1
    assert not (tmp_path / "run.service").exists()


def test_without_the_extra_it_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grapheraser.service.find_spec", lambda package: None)
    for words in (("backup", tmp_path / "run", tmp_path), ("restore", tmp_path, tmp_path / "run")):
        done = run(*words)
        assert done.returncode == 1
        assert "pip install '.[service]'" in done.stderr
