"""Cells: addressed by everything they depend on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grapheraser.errors import ParameterError
from grapheraser.models import PRESETS
from grapheraser_lab.experiments.catalogue import Cell, Options, Result, Results
from grapheraser_lab.framework.resolve import (
    aggregator_of,
    model_of,
    parse,
    partitioner_of,
    sources_of,
)
from grapheraser_lab.framework.shared_cells import SCRATCH, utility_cell
from tests.lab.conftest import write_tiny

OWN = "tests.lab.own_parts"


def test_equal_configurations_are_one_cell() -> None:
    one, other = Cell.of("utility", a=1, b=[2.5]), Cell.of("utility", b=[2.5], a=1)
    assert one == other
    assert one.digest == other.digest
    assert len({one, other}) == 1


def test_every_part_of_the_configuration_changes_the_address() -> None:
    base = Cell.of("utility", a=1, b=2)
    others = [Cell.of("utility", a=1, b=3), Cell.of("utility", a=1), Cell.of("tsne", a=1, b=2)]
    assert len({cell.digest for cell in (base, *others)}) == 4


def test_a_result_survives_json() -> None:
    result = Result(
        Cell.of("utility", a=0.1), {"f1": {"mean": 0.5}}, 1.5, 1.2, {"x": "1"}, {"cores": 2}
    )
    again = Result.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result
    assert Results({result.cell.digest: result}).value(again.cell) == {"f1": {"mean": 0.5}}


def test_experiments_share_cells_where_nothing_special_is_asked_for(options: Options) -> None:
    plain = utility_cell(options, options.datasets[0], "gcn", 0, "blpa")
    same = utility_cell(
        options, options.datasets[0], "gcn", 0, "blpa", gamma=0.0, drop_edges=0.0, forget=None
    )
    assert plain == same
    assert plain != utility_cell(options, options.datasets[0], "gcn", 0, "blpa", gamma=0.1)
    assert utility_cell(options, options.datasets[0], "gcn", 0, SCRATCH)["num_shards"] == 1


def test_a_changed_npz_file_is_another_cell(tmp_path: Path) -> None:
    paths = [tmp_path / "one" / "a.npz", tmp_path / "two" / "a.npz"]
    for seed, path in enumerate(paths):
        path.parent.mkdir()
        write_tiny(path, seed=seed)
    digests = {Options().data(str(path), 0)["data"] for path in paths}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mean", ("mean", {})),
        ("learned(solver=paper, sample=0.1)", ("learned", {"solver": "paper", "sample": 0.1})),
        ("learned(sample=1000)", ("learned", {"sample": 1000})),
        ("my.module:thing", ("my.module:thing", {})),
    ],
)
def test_parts_are_read(text: str, found: tuple[str, dict[str, object]]) -> None:
    assert parse(text) == found


def test_parts_are_made() -> None:
    assert aggregator_of("learned(solver=paper)").solver == "paper"  # type: ignore[attr-defined]
    assert "labels" in partitioner_of("bekm(embedding=sage)").inputs
    assert model_of("gcn:paper").name == "gcn:paper"


def test_a_preset_can_have_other_options() -> None:
    model = model_of("gat:paper(dropout=0.0, heads=2)")
    assert model == replace(PRESETS["gat:paper"], dropout=0.0, heads=2)
    with pytest.raises(ParameterError, match="can't be made"):
        model_of("gat:paper(colour=3)")


def test_the_users_own_parts_are_imported() -> None:
    assert partitioner_of(f"{OWN}:in_turn").name == "in_turn"
    assert model_of(f"{OWN}:Linear").name.endswith(":Linear")
    assert aggregator_of(f"{OWN}:Average").name == "mean"
    assert list(sources_of([f"{OWN}:in_turn", "blpa", "gcn:paper"])) == [OWN]


@pytest.mark.parametrize("text", ["no.such:thing", f"{OWN}:nothing"])
def test_what_can_not_be_imported_says_so(text: str) -> None:
    with pytest.raises(ParameterError, match="can't import"):
        partitioner_of(text)


def test_unknown_names_list_the_choices() -> None:
    with pytest.raises(ParameterError, match="Choose from: random"):
        Options(partitions=("nothing",))
    with pytest.raises(ParameterError, match="Choose from: mean"):
        Options(aggregations=("nothing",))
    with pytest.raises(ParameterError, match="Choose from: paper, literal, best"):
        Options(protocol="nothing")
    with pytest.raises(ParameterError, match="can't be made"):
        aggregator_of("mean(colour=red)")
