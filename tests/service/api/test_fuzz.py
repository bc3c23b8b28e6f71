"""Whatever is sent, by the schema or against it: no failure of the server, and always a problem."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from grapheraser.service.api.keys import Role
from tests.service.api.conftest import Api, opened
from tests.service.api.test_opendsr import certified

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
EXAMPLES = 15


@pytest.fixture(scope="module")
def fuzzed(fitted: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A service with its worker at work, and OpenDSR."""
    folder = tmp_path_factory.mktemp("fuzz")
    run = Path(shutil.copytree(fitted, folder / "people"))
    with opened(run, body_bytes=100_000, **certified(folder / "tls")) as made:
        made.service.start()
        yield made


@pytest.fixture(scope="module")
def schema(fuzzed: Api) -> Any:
    return schemathesis.openapi.from_url(f"{fuzzed.client.base_url}/openapi.json")


TAGS = (
    "graph",
    *("requests", "changes", "subjects", "model", "log", "access", "events", "health"),
    *("inference", "opendsr", "service", "dashboard", "audit", "embeddings"),
)
fuzzing = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_every_operation_has_one_of_these_tags(fuzzed: Api) -> None:
    paths = fuzzed.client.get("/openapi.json").json()["paths"]
    found = {tuple(one["tags"]) for methods in paths.values() for one in methods.values()}
    assert found == {(tag,) for tag in TAGS}


@pytest.mark.long
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("tag", TAGS)
def test_nothing_that_is_sent_makes_the_server_fail(
    tag: str, mode: GenerationMode, schema: Any, fuzzed: Api
) -> None:
    sent = 0

    def send(case: Any) -> None:
        nonlocal sent
        sent += 1
        if case.path == "/api/v1/events":
            case.query["seconds"] = 0  # else it goes on for a day
        role = Role.REQUESTER if case.path.startswith("/opendsr") else Role.OPERATOR
        headers = {"Authorization": f"Bearer {fuzzed.keys[role]}"}
        answer = case.call(headers=headers, timeout=30)
        case.validate_response(answer, checks=CHECKS)
        if answer.status_code >= 400:
            assert answer.headers["content-type"][0] == "application/problem+json"

    for operation in schema.include(tag=tag).get_all_operations():
        cases = operation.ok().as_strategy(generation_mode=mode)
        with suppress(Unsatisfiable):  # nothing can be wrong about a route without parameters
            asked: Any = given(cases)
            fuzzing(asked(send))()
    assert sent or mode is GenerationMode.NEGATIVE
