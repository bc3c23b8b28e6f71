"""The graph of a recommender in the dashboard: users and items are forgotten as such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import grapheraser as ge
from tests.recommendation.worlds import random_matrix
from tests.service.api.conftest import opened
from tests.service.dashboard.conftest import Office

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A service of a small recommender, with its worker at work."""
    folder = tmp_path_factory.mktemp("recommendation") / "shop"
    ge.Recommender().fit(random_matrix(30, 24)).save(folder)
    with opened(folder, window=0.05, poll_seconds=0.05) as api:
        api.service.start()
        yield Office(api, browser)


def test_a_user_that_is_found_in_the_graph_is_forgotten(office: Office) -> None:
    person = office.sign_in()
    page = person.open("/dashboard/graph#node=16")
    expect(page.locator("#node-title")).to_contain_text("16")
    page.get_by_role("button", name="Select to forget").click()
    expect(page.locator("#chosen")).to_contain_text("user")
    expect(page.locator("#chosen")).to_contain_text("8")
    page.get_by_role("button", name="Forget 1 user").click()
    expect(page.locator("#asked-title")).to_contain_text("Forgotten")
    model = office.api.service.served.now.model
    assert isinstance(model, ge.Recommender)
    assert model.num_users_ == 29
    assert not model.graph_.contains([16])[0]
    assert person.errors == []
