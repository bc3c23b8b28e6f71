"""The page of a collection: a graph is drawn, its nodes decide, and parts of it are forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import grapheraser as ge
from tests.graphs.collections import collection_of, random_parts
from tests.service.api.conftest import opened
from tests.service.dashboard.conftest import LOOKS, CheckAxe, Office, Person

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A service of a small collection, with its worker at work."""
    folder = tmp_path_factory.mktemp("collection") / "lab"
    ge.CollectionEraser().fit(collection_of(random_parts(30, seed=4))).save(folder)
    with opened(folder, window=0.05, poll_seconds=0.05) as api:
        api.service.start()
        yield Office(api, browser)


def shown(office: Office, graph: int, **looks: Any) -> Person:
    """Somebody who looks at a graph."""
    person = office.sign_in(**looks)
    page = person.open("/dashboard/graph")
    page.get_by_label("Find a graph").fill(str(graph))
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#node-title")).to_contain_text(f"Graph {graph}")
    return person


def test_a_node_that_is_clicked_is_forgotten(office: Office) -> None:
    model = office.api.service.served.now.model
    assert isinstance(model, ge.CollectionEraser)
    graph = next(g for g in model.collection_.ids.tolist() if len(model.collection_[g].nodes) > 4)
    before = model.collection_[graph].nodes.tolist()
    person = shown(office, graph)
    circles = person.page.locator("#stage circle")
    expect(circles).to_have_count(len(before))
    circles.nth(1).click()
    expect(person.page.locator("#chosen")).to_contain_text("node of a graph")
    person.page.get_by_role("button", name="Forget 1 node of a graph").click()
    expect(person.page.locator("#asked-title")).to_contain_text("Forgotten")
    expect(circles).to_have_count(len(before) - 1)
    now = office.api.service.served.now.model
    assert isinstance(now, ge.CollectionEraser)
    assert now.collection_[graph].nodes.tolist() == [n for n in before if n != before[1]]
    assert person.errors == []
    assert person.elsewhere == []


def test_a_graph_of_the_list_is_forgotten(office: Office) -> None:
    person = office.sign_in()
    page = person.open("/dashboard/graph")
    last = page.locator("#graphs button").last
    graph = last.get_attribute("data-graph")
    last.click()
    page.get_by_role("button", name="Select to forget").click()
    page.get_by_role("button", name="Forget 1 graph").click()
    expect(page.locator("#asked-title")).to_contain_text("Forgotten")
    expect(page.locator("#gone")).to_contain_text("not in the collection")
    expect(page.locator(f"#graphs button[data-graph='{graph}']")).to_have_count(0)


def test_requests_are_about_graphs(office: Office) -> None:
    person = office.sign_in()
    page = person.open("/dashboard/requests#new")
    options = page.locator("#what option").all_inner_texts()
    assert options == ["graphs", "nodes of graphs", "edges of graphs", "labels", "a subject"]


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_everybody_can_read_it(
    office: Office, check_axe: CheckAxe, scheme: str, width: int
) -> None:
    person = shown(office, 3, scheme=scheme, width=width)
    check_axe(person.page)
