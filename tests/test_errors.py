"""The tree of errors: one base, one form, and nothing lost between processes."""

from __future__ import annotations

import inspect
import pickle

import pytest

from grapheraser import errors

ALL = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, Exception) and cls.__module__ == errors.__name__
]


@pytest.mark.parametrize("cls", ALL)
def test_every_error_has_the_one_base_and_stands_in_the_drawing(cls: type[Exception]) -> None:
    assert issubclass(cls, errors.GraphEraserError)
    assert errors.__doc__ is not None
    assert cls.__name__ in errors.__doc__


def test_the_drawing_names_no_error_that_is_gone() -> None:
    assert errors.__doc__ is not None
    drawn = {word for word in errors.__doc__.split() if word.endswith("Error") and "(" not in word}
    assert drawn - {"ValueError", "ImportError"} == {cls.__name__ for cls in ALL}


@pytest.mark.parametrize("cls", [cls for cls in ALL if cls is not errors.TrainingError])
def test_message_and_hint_survive_pickling(cls: type[errors.GraphEraserError]) -> None:
    error = pickle.loads(pickle.dumps(cls("what was wrong", hint="what to do")))
    assert type(error) is cls
    assert (error.message, error.hint) == ("what was wrong", "what to do")
    assert str(error) == "what was wrong\n\nhint: what to do"


def test_failures_of_shards_survive_pickling() -> None:
    failed = errors.TrainingError({3: errors.GraphError("bad", hint="mend"), 7: OSError("gone")})
    error = pickle.loads(pickle.dumps(failed))
    assert error.failures.keys() == {3, 7}
    assert error.failures[3].hint == "mend"
    assert "shard 3: GraphError: bad" in str(error)
    assert "shard 7: OSError: gone" in str(error)


def test_without_a_hint_there_is_only_the_message() -> None:
    assert str(errors.GraphError("bad")) == "bad"


def test_a_bad_parameter_is_told_in_one_form() -> None:
    error = errors.ParameterError.of("num_shards", "GraphEraser", "an int in [1, 2166]", 0)
    assert str(error) == "'num_shards' of GraphEraser must be an int in [1, 2166]. Got 0."
    assert isinstance(error, ValueError)


def test_a_missing_extra_names_its_install() -> None:
    error = errors.MissingExtraError.of("kaminpar", "fast-partition", "partition 'kaminpar'")
    assert "pip install '.[fast-partition]'" in str(error)
    assert isinstance(error, ImportError)
