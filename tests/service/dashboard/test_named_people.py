"""Requests about a graph whose nodes have names, as people type them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

import grapheraser as ge
from tests.service.api.conftest import opened
from tests.service.dashboard.conftest import Office
from tests.strategies import small_graph

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A service whose people have names of two words, and one a name with a dash."""
    plain = small_graph()
    names = np.array([f"person {node}" for node in plain.ids], dtype=object)
    names[-1] = "zoe-quist"
    ends = names[np.searchsorted(plain.ids, plain.edges.reshape(-1, 2))]
    graph = ge.Graph.from_arrays(plain.x, ends.T, plain.y, ids=names, test=names[:5])
    folder = tmp_path_factory.mktemp("named") / "people"
    ge.GraphEraser(num_shards=3, epochs=3).fit(graph).save(folder)
    with opened(folder, window=0.05, poll_seconds=0.05) as api:
        api.service.start()
        yield Office(api, browser)


def graph_of(office: Office) -> ge.Graph:
    found = office.api.service.served.now.model.graph_
    assert isinstance(found, ge.Graph)
    return found


def ask(office: Office, what: str, which: str) -> None:
    """Fill in the form and watch the request until it is completed."""
    person = office.sign_in()
    page = person.open("/dashboard/requests")
    page.get_by_role("button", name="Ask to forget").click()
    page.get_by_label("What", exact=True).select_option(what)
    page.get_by_label("Which").fill(which)
    page.get_by_role("button", name="Forget it").click()
    expect(page).to_have_url(re.compile("/dashboard/requests/[0-9a-f]{32}$"))
    expect(page.locator("#request .state").first).to_contain_text("completed")
    assert (person.errors, person.elsewhere) == ([], [])


def test_people_are_forgotten_by_their_names(office: Office) -> None:
    other = str(graph_of(office).names_of(graph_of(office).train_nodes[:1])[0])
    assert graph_of(office).contains(["zoe-quist", other]).all()
    ask(office, "nodes", f"zoe-quist, {other}")
    assert not graph_of(office).contains(["zoe-quist", other]).any()


def test_a_tie_is_forgotten_by_the_names_of_its_ends(office: Office) -> None:
    graph = graph_of(office)
    pair = graph.edges[:1]
    one, two = graph.names_of(pair[0])
    ask(office, "edges", f"{one} - {two}")
    assert not graph_of(office).has_edges(pair).any()
    assert graph_of(office).contains([str(one), str(two)]).all()


def test_a_name_that_is_not_there_is_said_and_nothing_changes(office: Office) -> None:
    person, before = office.sign_in(), graph_of(office).num_nodes
    page = person.open("/dashboard/requests")
    page.get_by_role("button", name="Ask to forget").click()
    page.get_by_label("Which").fill("nobody of this name")
    page.get_by_role("button", name="Forget it").click()
    expect(page.locator(".alert.note")).to_contain_text("Nothing of it is in the run")
    assert graph_of(office).num_nodes == before
