"""The trial: what newcomers, operators and auditors type in works as their pages say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import trial

# `test_tutorials` runs these.
ELSEWHERE = {"notebooks-twice"}


@pytest.mark.long
@pytest.mark.parametrize("step", sorted(trial.STEPS.keys() - ELSEWHERE))
def test_a_step_of_the_trial_works(step: str, tmp_path: Path) -> None:
    try:
        trial.STEPS[step](tmp_path)
    except trial.Skipped as why:
        pytest.skip(str(why))


def test_a_step_that_prints_something_else_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    step = "```sh\necho one\n```\n\n```text\none\n```\n"
    (docs / "start.md").write_text("## Fit\n" + 4 * step + step.replace("\none\n", "\ntwo\n"))
    monkeypatch.setattr(trial, "ROOT", tmp_path)
    assert trial.main(["start-page"]) == 1
    assert "FAILED" in capsys.readouterr().out
    (docs / "start.md").write_text("## Fit\n" + 5 * step)
    assert trial.main(["start-page"]) == 0
    (docs / "start.md").write_text("## Fit\n" + 4 * step + step.replace("echo one", "exit 3"))
    assert trial.main(["start-page"]) == 1
    assert trial.main(["no-such-step"]) == 1
