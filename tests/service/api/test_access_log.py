"""The access log: only on request, and with templates of routes in the place of paths."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.service.api.conftest import opened


@pytest.mark.parametrize("wanted", [True, False])
def test_requests_are_logged_by_template_where_that_is_asked_for(
    run: Path, caplog: pytest.LogCaptureFixture, wanted: bool
) -> None:
    caplog.set_level(logging.INFO, "grapheraser")
    name = "0123456789abcdef" * 2
    with opened(run, access_log=wanted) as api:
        api.call("GET", f"/api/v1/requests/{name}?limit=4711")
        api.call("GET", "/nobody/knows/4711")
    told = [record.__dict__["fields"] for record in caplog.records if record.msg == "http request"]
    assert [(one["method"], one["route"], one["status"]) for one in told] == (
        [("GET", "/api/v1/requests/{name}", 404), ("GET", "other", 404)] if wanted else []
    )
    assert all(one["ms"] >= 0 and len(one) == 4 for one in told)
    assert not any(name in str(one) or "4711" in str(one) for one in told)
