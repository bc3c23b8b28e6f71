"""The page of the API: Swagger UI from a package, under the policy of all other pages."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from grapheraser.service.dashboard import static
from tests.service.api.conftest import Api, fitted, shared
from tests.service.dashboard.conftest import Office

__all__ = ["fitted", "shared"]  # fixtures

installed = pytest.mark.skipif(
    find_spec("fastapi_offline") is None, reason="needs the package fastapi-offline"
)


@installed
def test_a_visitor_sees_every_route_and_tries_one_out(office: Office) -> None:
    person = office.visitor()
    page = person.open("/docs")
    for path in ("/api/v1/requests", "/v2/models/{model}/infer", "/opendsr/v2/discovery"):
        page.locator(f".opblock-summary-path[data-path='{path}']").first.wait_for()
    page.locator(".opblock", has=page.locator("[data-path='/api/v1/health']")).click()
    page.get_by_role("button", name="Execute").click()
    page.locator(".live-responses-table .response-col_status", has_text="200").wait_for()
    assert (person.errors, person.elsewhere) == ([], [])


@installed
def test_who_has_signed_in_submits_a_request_without_a_key(office: Office) -> None:
    person = office.sign_in()
    page = person.open("/docs")
    page.locator(".opblock-post", has=page.locator("[data-path='/api/v1/requests']")).click()
    page.locator("textarea").fill('{"nodes": [1]}')
    page.get_by_role("button", name="Execute").click()
    page.locator(".live-responses-table .response-col_status", has_text="202").wait_for()
    assert (person.errors, person.elsewhere) == ([], [])


def test_a_service_without_the_package_says_which_is_missing(
    shared: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "swagger_files", dict)
    answer = shared.call("GET", "/docs", None)
    assert answer.status_code == 404
    assert "fastapi-offline" in answer.json()["detail"]
    assert "pip install" in answer.json()["hint"]
