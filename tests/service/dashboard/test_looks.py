"""The looks of the pages: colours by choice, tables on a phone, words that are explained."""

from __future__ import annotations

import grapheraser as ge
from grapheraser.service.api.keys import Role
from tests.service.dashboard.conftest import NARROW, CheckAxe, Office

_PAPER = "getComputedStyle(document.body).backgroundColor"


def test_colours_are_as_the_system_says_until_somebody_chooses(office: Office) -> None:
    for scheme in ("light", "dark"):
        person = office.sign_in(scheme=scheme)
        page = person.page
        button = page.locator("#theme")
        seen = {}
        for theme in ("as the system", "light", "dark"):
            assert button.get_attribute("aria-label") == f"Theme: {theme}"
            seen[theme] = page.evaluate(_PAPER)
            button.click()
        assert seen["light"] != seen["dark"]
        assert seen["as the system"] == seen[scheme]
        assert button.get_attribute("aria-label") == "Theme: as the system"
        assert person.errors == []


def test_a_choice_of_colours_is_kept_on_other_pages(office: Office, check_axe: CheckAxe) -> None:
    person = office.sign_in(scheme="light")
    before = person.page.evaluate(_PAPER)
    person.page.locator("#theme").click()
    person.page.locator("#theme").click()
    for path in ("/dashboard/requests", "/dashboard/graph", "/dashboard/audit"):
        page = person.open(path)
        assert page.evaluate(_PAPER) != before
        assert page.locator("#theme").get_attribute("aria-label") == "Theme: dark"
        check_axe(page)


def test_requests_fit_a_phone(office: Office, check_axe: CheckAxe) -> None:
    person = office.sign_in(width=NARROW)
    node = int(office.api.service.served.now.model.graph_.train_nodes[-1])
    client = ge.Client(office.url, office.api.keys[Role.OPERATOR])
    client.wait(client.submit(nodes=[node])["id"])
    page = person.open("/dashboard/requests")
    card = page.locator(".cards tbody tr").first
    card.wait_for()
    assert "forget 1 node" in card.inner_text()
    box = card.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= NARROW
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
    received = card.locator("td[data-name=Received]")
    assert received.is_visible()
    check_axe(page)


def test_the_graph_page_says_what_it_waits_for_and_what_members_are(office: Office) -> None:
    person = office.sign_in()
    page = person.page
    page.route("**/api/v1/graph/layout*", lambda route: None)  # never answered
    person.open("/dashboard/graph")
    waiting = page.locator("#waiting")
    waiting.wait_for()
    nodes = office.api.service.served.now.model.graph_.num_nodes
    assert f"Placing {nodes:,} nodes" in waiting.inner_text()
    page.unroute("**/api/v1/graph/layout*")
    node = int(office.api.service.served.now.model.graph_.train_nodes[0])
    page.goto("about:blank")
    person.open(f"/dashboard/graph#node={node}")
    page.locator("#waiting").wait_for(state="hidden")
    page.locator("#members li").first.wait_for()
    shown = page.locator("#members .name").all_inner_texts()
    told = page.locator(".members-about dt").all_inner_texts()
    assert {name for name in shown if not name.startswith("shard")} <= set(told)


def test_the_first_colour_tells_something(office: Office) -> None:
    assert office.api.service.served.now.model.partition_.data_free
    page = office.sign_in().open("/dashboard/graph")
    options = page.locator("#colour option").all_inner_texts()
    assert options == ["class", "neighbours", "shard", "importance"]
    page.locator("#legend li").first.wait_for()
    page.select_option("#colour", "shard")
    assert "by their ids alone" in page.locator("#legend-about").inner_text()
    page.select_option("#colour", "neighbours")
    graph = office.api.service.served.now.model.graph_
    alone = int((graph.degree == 0).sum())
    counts = dict(line.rsplit("\n", 1) for line in page.locator("#legend button").all_inner_texts())
    assert sum(int(count.replace(",", "")) for count in counts.values()) == graph.num_nodes
    assert int(counts.get("0", 0)) == alone
