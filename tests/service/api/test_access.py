"""Who may do what: keys, roles, rates, sizes."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from grapheraser.errors import ParameterError
from grapheraser.service import dashboard
from grapheraser.service.api import app, inference, v1
from grapheraser.service.api.access import ROLE_RATES, Buckets
from grapheraser.service.api.keys import COOKIE, REMEMBERED, Keys, Role, Sessions
from grapheraser.service.api.opendsr import routes as opendsr
from grapheraser.service.api.problems import Problem
from grapheraser.service.api.start import first_key, is_loopback, url_of
from grapheraser.service.database import Database
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings
from tests.service.api.conftest import Api, opened

OPEN = {
    "/openapi.json",
    "/docs",
    "/api/v1/health",
    "/api/v1/ready",
    "/v2/health/live",
    "/v2/health/ready",
    "/opendsr/discovery",
    "/opendsr/v2/discovery",
    "/opendsr/certificate.pem",
    "/opendsr/v2/certificate.pem",
    "/",
    "/dashboard/sign-in",
    "/dashboard/static/{file}",
}
NAME, KEY = "0" * 32, "0" * 12
PLACES = {
    "{name}": NAME,
    "{place}": "1",
    "{sequence}": "1",
    "{model}": "people",
    "{version}": "0",
    "{file}": "dashboard.css",
}


def operations(api: Api) -> list[tuple[str, str]]:
    schema = api.client.get("/openapi.json").json()
    return [
        (method.upper(), path) for path, methods in schema["paths"].items() for method in methods
    ]


def filled(path: str) -> str:
    if path.startswith("/api/v1/keys/"):
        return path.replace("{name}", KEY)
    if path.startswith("/api/v1/verifications/"):
        return path.replace("{name}", "0" * 16)
    if path.startswith("/opendsr"):
        return path.replace("{name}", "a7551968-d5d6-44b2-9831-815ac9017798")
    for name, value in PLACES.items():
        path = path.replace(name, value)
    return path


def test_every_route_is_in_the_schema(shared: Api) -> None:
    known = operations(shared)
    assert len(known) > 30
    rooms = (v1, inference, opendsr, app, dashboard)
    declared = re.compile(r"^@\w+\.(?:get|post|put|delete|patch)\(", re.M)
    files = [f for room in rooms for f in _files(Path(str(room.__file__)))]
    # Hidden is what answers to all other paths.
    hidden = re.compile(r"^@\w+\.get\(.*include_in_schema=False\)$", re.M)
    written = {
        file: len(declared.findall(text)) - len(hidden.findall(text))
        for file in files
        for text in [file.read_text()]
    }
    twice = written[Path(str(opendsr.__file__))]  # with the major version in the path, and without
    assert len(known) == sum(written.values()) + twice


def _files(module: Path) -> list[Path]:
    return sorted(module.parent.glob("*.py")) if module.name == "__init__.py" else [module]


def test_all_routes_but_health_and_schema_need_a_key(shared: Api) -> None:
    for method, path in operations(shared):
        answer = shared.call(method, filled(path), None)
        if path in OPEN and method == "GET":
            assert answer.status_code in (200, 303, 503), path
            continue
        assert answer.status_code == 401, (method, path)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "text", ["nonsense", "ge_000000000000_" + "A" * 43, "ge_" + "é" * 20, "Bearer"]
)
def test_wrong_keys_are_refused(api: Api, text: str) -> None:
    headers = {b"Authorization": f"Bearer {text}".encode()}
    assert api.client.get("/api/v1/requests", headers=headers).status_code == 401


ALLOWED = {
    ("POST", "/api/v1/requests"): {Role.REQUESTER, Role.OPERATOR},
    ("GET", "/api/v1/requests"): {Role.REQUESTER, Role.OPERATOR, Role.AUDITOR},
    ("DELETE", f"/api/v1/requests/{NAME}"): {Role.REQUESTER, Role.OPERATOR},
    ("POST", f"/api/v1/requests/{NAME}/retry"): {Role.OPERATOR},
    ("GET", f"/api/v1/requests/{NAME}/receipt"): {Role.REQUESTER, Role.OPERATOR},
    ("POST", "/api/v1/updates"): {Role.OPERATOR},
    ("POST", "/api/v1/insertions"): {Role.OPERATOR},
    ("POST", "/api/v1/subjects"): {Role.OPERATOR},
    ("POST", "/api/v1/subjects/find"): {Role.OPERATOR},
    ("POST", "/api/v1/subjects/forget"): {Role.OPERATOR},
    ("GET", "/api/v1/log"): {Role.OPERATOR, Role.AUDITOR},
    ("GET", "/api/v1/log/checkpoint"): set(Role),
    ("GET", "/api/v1/model"): set(Role),
    ("POST", "/api/v1/plan"): {Role.OPERATOR},
    ("GET", "/api/v1/shards"): {Role.OPERATOR},
    ("GET", "/api/v1/shards/scores"): {Role.OPERATOR},
    ("POST", "/api/v1/verifications"): {Role.OPERATOR, Role.AUDITOR},
    ("GET", "/api/v1/verifications"): {Role.OPERATOR, Role.AUDITOR},
    ("GET", "/api/v1/verifications/0000000000000000"): {Role.OPERATOR, Role.AUDITOR},
    ("POST", "/api/v1/receipts/verify"): set(Role),
    ("GET", "/api/v1/audit"): {Role.OPERATOR, Role.AUDITOR},
    ("GET", "/api/v1/versions"): {Role.OPERATOR, Role.AUDITOR},
    ("GET", "/api/v1/keys"): {Role.OPERATOR},
    ("POST", "/api/v1/keys"): {Role.OPERATOR},
    ("GET", "/metrics"): {Role.OPERATOR, Role.AUDITOR},
    ("GET", "/v2/models/people"): {Role.OPERATOR, Role.READER},
    ("POST", "/v2/models/people/infer"): {Role.OPERATOR, Role.READER},
    ("POST", "/opendsr/requests"): {Role.OPERATOR, Role.REQUESTER},
    ("GET", "/api/v1/events?seconds=0"): {Role.OPERATOR, Role.AUDITOR, Role.REQUESTER},
    ("GET", "/api/v1/summary"): {Role.OPERATOR, Role.AUDITOR, Role.REQUESTER},
    ("GET", "/api/v1/scores"): {Role.OPERATOR, Role.AUDITOR},
    ("GET", "/dashboard"): set(Role),
    ("GET", "/dashboard/graph"): {Role.OPERATOR},
    ("GET", "/dashboard/requests"): {Role.OPERATOR, Role.AUDITOR, Role.REQUESTER},
    ("GET", f"/dashboard/requests/{NAME}"): {Role.OPERATOR, Role.AUDITOR, Role.REQUESTER},
    ("GET", f"/dashboard/requests/{NAME}/receipt"): {Role.OPERATOR, Role.REQUESTER},
    ("GET", "/dashboard/shards"): {Role.OPERATOR},
    ("GET", "/dashboard/audit"): {Role.OPERATOR, Role.AUDITOR},
}


@pytest.mark.parametrize("role", Role)
def test_every_role_may_do_what_it_is_for_and_nothing_else(shared: Api, role: Role) -> None:
    for (method, path), allowed in ALLOWED.items():
        answer = shared.call(method, path, role)
        assert (answer.status_code != 403) is (role in allowed), (method, path)


def test_only_the_hash_of_a_key_is_kept(api: Api, tmp_path: Path) -> None:
    made = api.call("POST", "/api/v1/keys", json={"name": "ci", "role": "reader"})
    assert made.status_code == 201
    key = made.json()["key"]
    secret = key.split("_", 2)[2]
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert not any(secret.encode() in file.read_bytes() for file in files)
    listed = api.call("GET", "/api/v1/keys").json()
    assert {entry["name"] for entry in listed} == {"ci", *(role.value for role in Role)}
    assert secret not in str(listed)
    assert api.client.get("/api/v1/model", headers={"Authorization": f"Bearer {key}"}).is_success


def test_a_revoked_key_is_refused_at_once(shared: Api) -> None:
    made = shared.call("POST", "/api/v1/keys", json={"name": "ci", "role": "reader"}).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert shared.client.get("/api/v1/model", headers=headers).is_success
    assert shared.call("DELETE", f"/api/v1/keys/{made['id']}").status_code == 204
    assert shared.client.get("/api/v1/model", headers=headers).status_code == 401
    assert shared.call("DELETE", f"/api/v1/keys/{made['id']}").status_code == 404


def test_a_key_revoked_elsewhere_is_refused_within_seconds(database: Database) -> None:
    now = [0.0]
    here, elsewhere = Keys(database, clock=lambda: now[0]), Keys(database)
    key, text = here.create("ci", Role.READER)
    assert here.find(text) == key
    assert elsewhere.revoke(key.id)
    now[0] = REMEMBERED
    assert here.find(text) is None


def test_an_operator_cannot_revoke_their_own_key(shared: Api) -> None:
    mine = next(key.id for key in shared.parts.keys.list() if key.role is Role.OPERATOR)
    assert shared.call("DELETE", f"/api/v1/keys/{mine}").status_code == 409


def test_who_asks_too_often_has_to_wait(run: Path) -> None:
    with opened(run, rate=0.01) as api:  # a burst of one
        assert api.call("GET", "/api/v1/model", Role.READER).status_code == 200
        refused = api.call("GET", "/api/v1/model", Role.READER)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) >= 1
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert api.call("GET", "/api/v1/model", Role.AUDITOR).status_code == 200
        assert api.client.get("/api/v1/health").status_code == 200


def test_guessing_keys_is_slowed_down(api: Api) -> None:
    headers = {"Authorization": "Bearer ge_000000000000_" + "A" * 43}
    found = [api.client.get("/api/v1/model", headers=headers).status_code for _ in range(40)]
    assert found[0] == 401
    assert found[-1] == 429
    assert api.call("GET", "/api/v1/model").status_code == 200


@pytest.mark.parametrize("role", Role)
def test_every_role_has_a_rate_unless_told_otherwise(shared: Api, role: Role) -> None:
    gate, now = shared.app.state.gate, [0.0]
    usual = ROLE_RATES[role]
    buckets = Buckets(usual, clock=lambda: now[0])
    for _ in range(usual.burst):
        buckets.take("somebody")
    with pytest.raises(Problem, match="too-many-requests"):
        buckets.take("somebody")
    assert gate._buckets[role]._rate == usual


def test_wrong_sessions_are_slowed_down_like_wrong_keys(api: Api) -> None:
    headers = {"Cookie": f"{COOKIE}={'A' * 43}"}
    found = [api.client.get("/api/v1/model", headers=headers).status_code for _ in range(40)]
    assert (found[0], found[-1]) == (401, 429)
    assert api.client.get("/dashboard/sign-in", headers=headers).status_code == 429
    assert api.call("GET", "/api/v1/model").status_code == 200


@pytest.mark.parametrize("given", ["Basic dXNlcjpwYXNz", "Bearer", "", "Bearer ge_nonsense"])
def test_other_credentials_are_never_judged_by_the_cookie(shared: Api, given: str) -> None:
    sessions: Sessions = shared.app.state.gate.sessions
    operator = shared.parts.keys.find(shared.keys[Role.OPERATOR])
    assert operator is not None
    headers = {"Cookie": f"{COOKIE}={sessions.begin(operator)}"}
    assert shared.client.get("/api/v1/keys", headers=headers).status_code == 200
    headers["Authorization"] = given
    assert shared.client.get("/api/v1/keys", headers=headers).status_code == 401
    assert shared.client.get("/dashboard/shards", headers=headers).status_code == 401


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused(run: Path, chunked: bool) -> None:
    body = b'{"nodes": [' + b"1," * 2000 + b"1]}"
    content = iter([body[:600], body[600:]]) if chunked else body
    headers = {"Content-Type": "application/json"}
    with opened(run, body_bytes=1000) as api:
        answer = api.call("POST", "/api/v1/requests", content=content, headers=headers)
        assert answer.status_code == 413
        assert answer.json()["type"] == "urn:grapheraser:problem:body-too-large"
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_first_key_is_made_once_and_only_for_this_machine(run: Path) -> None:
    far = Service.opened(run, Settings(host="0.0.0.0"))
    with pytest.raises(ParameterError, match="before there are API keys"):
        first_key(far)
    near = Service.opened(run)
    text = first_key(near)
    assert text is not None
    found = Keys(near.database).find(text)
    assert found is not None
    assert found.role is Role.OPERATOR
    assert first_key(near) is None
    assert first_key(far) is None  # there are keys now
    far.database.dispose()
    near.database.dispose()


@pytest.mark.parametrize(
    ("host", "near"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_is_told_from_other_addresses(host: str, near: bool) -> None:
    assert is_loopback(host) is near


def test_addresses_of_both_kinds_have_urls() -> None:
    assert url_of("127.0.0.1", 80) == "http://127.0.0.1:80"
    assert url_of("::1", 80) == "http://[::1]:80"


def test_keys_are_hashed_in_the_file_of_the_database(tmp_path: Path) -> None:
    from grapheraser.service.database.engine import sqlite_url

    path = tmp_path / "queue.db"
    _, text = Keys(Database.opened(sqlite_url(path))).create("ci", Role.READER)
    with sqlite3.connect(path) as connection:
        (digest,) = connection.execute("select digest from api_keys").fetchone()
    assert len(digest) == 64
    assert text.split("_", 2)[2] not in digest
