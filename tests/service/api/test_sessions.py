"""Sessions: a cookie in place of a key, and what it must not allow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from grapheraser.service.api.keys import COOKIE, Keys, Role, Sessions, csrf_of
from grapheraser.service.dashboard.shell import POLICY
from grapheraser.service.database import Database
from grapheraser.service.database.tables import SESSIONS
from tests.service.api.conftest import Api, opened

PAGE = {"Accept": "text/html"}


def origin(api: Api) -> str:
    return str(api.client.base_url).rstrip("/")


def sign_in(api: Api, key: str, **headers: str) -> Any:
    given = {"Origin": origin(api)} | headers
    answer = api.client.post("/dashboard/sign-in", data={"key": key}, headers=given)
    api.client.cookies.clear()
    return answer


def token_of(api: Api, role: Role = Role.OPERATOR) -> str:
    cookies = SimpleCookie(sign_in(api, api.keys[role]).headers["Set-Cookie"])
    return cookies[COOKIE].value


def call(api: Api, method: str, path: str, token: str, **more: Any) -> Any:
    """The answer to a page with this session."""
    headers = {"Cookie": f"{COOKIE}={token}", "Origin": origin(api), "X-CSRF-Token": csrf_of(token)}
    headers |= more.pop("headers", {})
    kept = {name: value for name, value in headers.items() if value is not None}
    return api.client.request(method, path, headers=kept, **more)


def test_a_session_may_do_what_its_key_may(shared: Api) -> None:
    token = token_of(shared, Role.AUDITOR)
    assert call(shared, "GET", "/api/v1/requests", token).status_code == 200
    assert call(shared, "POST", "/api/v1/requests", token, json={"nodes": [1]}).status_code == 403
    assert call(shared, "GET", "/api/v1/keys", token).status_code == 403


def test_a_session_submits_with_its_csrf_token(api: Api) -> None:
    token, node = token_of(api), int(api.service.served.now.model.graph_.train_nodes[0])
    made = call(api, "POST", "/api/v1/requests", token, json={"nodes": [node]})
    assert made.status_code == 202
    assert call(api, "DELETE", f"/api/v1/requests/{made.json()['id']}", token).status_code == 200


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({"X-CSRF-Token": None}, "no-csrf-token"),
        ({"X-CSRF-Token": "0" * 64}, "no-csrf-token"),
        ({"X-CSRF-Token": "é".encode()}, "no-csrf-token"),
        ({"Origin": None}, "other-origin"),
        ({"Origin": "null"}, "other-origin"),
        ({"Origin": "https://elsewhere.example"}, "other-origin"),
    ],
)
def test_what_another_page_sends_changes_nothing(
    shared: Api, headers: dict[str, Any], kind: str
) -> None:
    token = token_of(shared)
    sent = {"headers": headers, "json": {"nodes": [1]}}
    answer = call(shared, "POST", "/api/v1/requests", token, **sent)
    assert answer.status_code == 403
    assert answer.json()["type"] == f"urn:grapheraser:problem:{kind}"
    assert shared.parts.queue.list().requests == ()
    assert call(shared, "POST", "/dashboard/sign-out", token, headers=headers).status_code == 403
    assert call(shared, "GET", "/api/v1/model", token).status_code == 200


def test_the_token_of_another_session_is_refused(shared: Api) -> None:
    mine, other = token_of(shared), token_of(shared)
    headers = {"X-CSRF-Token": csrf_of(other)}
    answer = call(shared, "DELETE", f"/api/v1/requests/{'0' * 32}", mine, headers=headers)
    assert answer.status_code == 403


def test_neither_a_key_as_cookie_nor_a_session_as_key(shared: Api) -> None:
    token, key = token_of(shared), shared.keys[Role.OPERATOR]
    assert call(shared, "GET", "/api/v1/model", key).status_code == 401
    answer = shared.client.get("/api/v1/model", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401


def test_a_key_comes_before_a_cookie(shared: Api) -> None:
    token = token_of(shared, Role.OPERATOR)
    headers = {"Cookie": f"{COOKIE}={token}"}
    assert shared.call("GET", "/api/v1/keys", Role.READER, headers=headers).status_code == 403


def test_signing_in_needs_a_valid_key_from_a_page_of_the_service(shared: Api) -> None:
    assert sign_in(shared, "nonsense").status_code == 401
    assert sign_in(shared, "").status_code == 401
    key = shared.keys[Role.READER]
    assert sign_in(shared, key, Origin="https://elsewhere.example").status_code == 403
    done = sign_in(shared, f"  {key} ")
    assert (done.status_code, done.headers["Location"]) == (303, "/dashboard")


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        ("/dashboard/shards", "/dashboard/shards"),
        ("https://elsewhere.example", "/dashboard"),
        ("//elsewhere.example", "/dashboard"),
        ("/dashboard/../metrics", "/dashboard"),
        ("/dashboard//elsewhere.example", "/dashboard"),
    ],
)
def test_signing_in_leads_to_pages_of_the_dashboard_alone(
    shared: Api, asked: str, there: str
) -> None:
    fields = {"key": shared.keys[Role.OPERATOR], "next": asked}
    headers = {"Origin": origin(shared)}
    answer = shared.client.post("/dashboard/sign-in", data=fields, headers=headers)
    shared.client.cookies.clear()
    assert answer.headers["Location"] == there


def test_guessing_on_the_sign_in_page_is_slowed_down(api: Api) -> None:
    found = [sign_in(api, "ge_000000000000_" + "A" * 43, **PAGE).status_code for _ in range(30)]
    assert (found[0], found[-1]) == (401, 429)


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(shared: Api) -> None:
    answer = sign_in(shared, shared.keys[Role.READER])
    (cookie,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")
    assert not cookie["secure"]  # this service is reached by http
    assert not cookie["domain"]
    far = sign_in(shared, shared.keys[Role.READER], **{"X-Forwarded-Proto": "https"})
    assert "Secure" in far.headers["Set-Cookie"]


def test_only_the_hash_of_a_session_is_kept(api: Api, tmp_path: Path) -> None:
    token = token_of(api)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(token.encode() in file.read_bytes() for file in files)
    assert not any(csrf_of(token).encode() in file.read_bytes() for file in files)


def test_signing_out_ends_the_session(shared: Api) -> None:
    token = token_of(shared)
    fields = {"csrf": csrf_of(token)}
    done = call(
        shared, "POST", "/dashboard/sign-out", token, data=fields, headers={"X-CSRF-Token": None}
    )
    assert (done.status_code, done.headers["Location"]) == (303, "/dashboard/sign-in")
    assert call(shared, "GET", "/api/v1/model", token).status_code == 401


def test_a_revoked_key_ends_its_sessions_and_streams(shared: Api) -> None:
    made, text = shared.parts.keys.create("temporary", Role.AUDITOR)
    token = SimpleCookie(sign_in(shared, text).headers["Set-Cookie"])[COOKIE].value
    assert call(shared, "GET", "/api/v1/model", token).status_code == 200
    assert shared.call("DELETE", f"/api/v1/keys/{made.id}").status_code == 204
    assert call(shared, "GET", "/api/v1/model", token).status_code == 401
    with shared.parts.keys.database.reading() as connection:
        mine = sa.select(SESSIONS).where(SESSIONS.c.key == made.id)
        assert connection.execute(mine).first() is None


def test_a_session_ends_by_itself(database: Database) -> None:
    now = [datetime(2030, 1, 1, tzinfo=UTC)]
    keys = Keys(database)
    sessions = Sessions(keys, timedelta(hours=2), clock=lambda: now[0])
    key, _ = keys.create("ada", Role.READER)
    first = sessions.begin(key)
    assert sessions.find(first) == key
    now[0] += timedelta(hours=2)
    assert sessions.find(first) is None
    sessions.begin(key)
    with database.reading() as connection:
        rows = connection.execute(sa.select(sa.func.count()).select_from(SESSIONS)).scalar()
    assert rows == 1  # what has ended is gone


def test_every_page_has_its_policy(shared: Api) -> None:
    token = token_of(shared)
    schema = shared.client.get("/openapi.json").json()
    pages = [path for path, methods in schema["paths"].items() if _is_page(methods.get("get", {}))]
    assert len(pages) >= 8
    for template in pages:
        path = template.replace("{name}", "0" * 32)
        answer = call(shared, "GET", path, token, headers=PAGE)
        assert answer.headers["Content-Security-Policy"] == POLICY, path
        assert "unsafe" not in POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "style=" not in answer.text
        assert "onclick" not in answer.text


def _is_page(operation: dict[str, Any]) -> bool:
    return "text/html" in operation.get("responses", {}).get("200", {}).get("content", {})


def test_people_see_errors_as_pages_and_programs_as_problems(shared: Api) -> None:
    path, token = f"/dashboard/requests/{'0' * 32}", token_of(shared)
    seen = call(shared, "GET", path, token, headers=PAGE)
    assert (seen.status_code, seen.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "There is no request" in seen.text
    read = call(shared, "GET", path, token)
    assert read.headers["Content-Type"] == "application/problem+json"
    away = shared.client.get(path, headers=PAGE)
    assert away.headers["Location"] == f"/dashboard/sign-in?next={path}"


@pytest.mark.parametrize("path", ["/dashboard/nowhere", "/dashboard/shards/7/more"])
def test_people_see_that_there_is_no_such_page(shared: Api, path: str) -> None:
    seen = call(shared, "GET", path, token_of(shared), headers=PAGE)
    assert (seen.status_code, seen.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page" in seen.text
    assert 'href="/dashboard/shards"' in seen.text  # where to go from here
    read = shared.client.get(path)
    assert (read.status_code, read.json()["type"]) == (404, "urn:grapheraser:problem:unknown-page")


def test_files_are_sent_once(shared: Api) -> None:
    first = shared.client.get("/dashboard/static/style.css")
    assert first.headers["Content-Type"] == "text/css; charset=utf-8"
    tag = {"If-None-Match": first.headers["ETag"]}
    assert shared.client.get("/dashboard/static/style.css", headers=tag).status_code == 304
    for name in ("nothing.js", "..%2Foverview.py", "overview.py"):
        assert shared.client.get(f"/dashboard/static/{name}").status_code == 404


def test_a_rate_holds_for_sessions_too(run: Path) -> None:
    with opened(run, rate=0.01) as api:
        token = token_of(api)
        assert call(api, "GET", "/api/v1/model", token).status_code == 200
        assert call(api, "GET", "/api/v1/model", token).status_code == 429
