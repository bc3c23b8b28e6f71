"""`--help` of every verb: whole sentences, for the verb and for each of its options."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer.main

from grapheraser.cli.app import app
from tests.cli.commands import run

_GROUP: Any = typer.main.get_command(app)
_VERBS: list[str] = _GROUP.list_commands(None)
# A sentence, or a description that reads as one: it begins with a capital letter and ends.
_SENTENCE = re.compile(r"(?!Of )[A-Z`].*\.", re.DOTALL)


def test_the_list_of_verbs_shows_whole_sentences() -> None:
    shown = run("--help").stdout
    listed = re.split(r"^Commands:\n", shown, flags=re.MULTILINE)[1]
    assert "..." not in listed
    words = " ".join(listed.split())
    for verb in _VERBS:
        text = " ".join((_GROUP.get_command(None, verb).help or "").split())
        sentence = re.split(r"(?<=\.) ", text)[0]
        assert f"{verb} {sentence}" in words


@pytest.mark.parametrize("verb", _VERBS)
def test_a_verb_and_each_of_its_options_say_whole_sentences(verb: str) -> None:
    command = _GROUP.get_command(None, verb)
    assert _SENTENCE.fullmatch(command.help.strip()), command.help
    for parameter in command.params:
        said = getattr(parameter, "help", None)
        assert said, f"{verb}: {parameter.name} says nothing"
        assert _SENTENCE.fullmatch(said.strip()), f"{verb}: {parameter.name}: {said}"


@pytest.mark.parametrize("verb", [verb for verb in _VERBS if verb not in ("bench", "experiment")])
def test_the_help_of_a_verb_cuts_nothing_off(verb: str) -> None:
    shown = "".join(run(verb, "--help").stdout.split())  # lines are also broken at hyphens
    for parameter in _GROUP.get_command(None, verb).params:
        if not getattr(parameter, "hidden", False):
            assert "".join(parameter.help.split()) in shown, parameter.name
