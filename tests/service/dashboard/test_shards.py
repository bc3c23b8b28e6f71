"""The page of the shards: what it shows, how it is sorted, and that it follows the service."""

from __future__ import annotations

import re

import pytest

from grapheraser.service.api.keys import Role
from tests.service.dashboard.conftest import LOOKS, CheckAxe, Office, Person

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


def opened(office: Office, role: Role = Role.OPERATOR, **looks: object) -> Person:
    """The page, with its scores."""
    person = office.sign_in(role, **looks)
    page = person.open("/dashboard/shards")
    expect(page.locator("#shards > [data-scored=yes]")).to_be_visible(timeout=60_000)
    return person


def column(person: Person, index: int) -> list[str]:
    rows = person.page.locator("table.shards tbody tr")
    return [row.locator("th, td").nth(index).inner_text() for row in rows.all()]


def forget(office: Office, count: int = 1) -> list[int]:
    """Forget training nodes by the API; gives them."""
    model = office.api.service.served.now.model
    nodes = [int(node) for node in model.graph_.train_nodes[:count]]
    office.done(office.api.submit(nodes=nodes).json()["id"])
    return nodes


def test_the_table_shows_what_the_api_says(office: Office) -> None:
    person = opened(office)
    found = office.api.call("GET", "/api/v1/shards").json()
    scores = office.api.call("GET", "/api/v1/shards/scores").json()
    assert column(person, 0) == [str(one["shard"]) for one in found["shards"]]
    assert [text.strip() for text in column(person, 1)] == [
        f"{one['nodes']:,}" for one in found["shards"]
    ]
    assert [text.strip() for text in column(person, 3)] == [
        f"{one['f1']:.3f}" for one in scores["shards"]
    ]
    facts = person.page.locator("dl.facts")
    expect(facts).to_contain_text(f"{found['partition']['balance']:.2f}")
    expect(facts).to_contain_text(f"{scores['whole']:.3f}")
    assert person.errors == []
    assert person.elsewhere == []


def test_a_column_is_sorted_by_mouse_and_by_keyboard(office: Office) -> None:
    person = opened(office)
    page = person.page
    head = page.get_by_role("columnheader", name="Nodes")
    page.get_by_role("button", name="Nodes").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    sizes = [int(text) for text in column(person, 1)]
    assert sizes == sorted(sizes, reverse=True)
    page.keyboard.press("Enter")  # the button has the focus still
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert [int(text) for text in column(person, 1)] == sorted(sizes)
    expect(page.get_by_role("status").filter(has_text="Sorted")).to_have_text(
        re.compile("Nodes, the smallest first")
    )


def test_a_shard_that_is_retrained_lights_up_while_one_looks(office: Office) -> None:
    person = opened(office)
    page = person.page
    page.get_by_role("button", name="Nodes").click()
    before = office.api.service.served.now
    (node,) = forget(office)
    shard = int(before.model.partition_.shard_of([node])[0])
    version = before.version + 1
    expect(page.locator(f"#shards > [data-version='{version}']")).to_be_visible()
    row = page.locator("tr.last")
    expect(row).to_have_count(1)
    expect(row.get_by_role("rowheader")).to_contain_text(str(shard))
    expect(row).to_contain_text(f"version {version}")
    expect(page.locator(".strip rect.hit")).to_have_count(1)
    expect(page.locator(".strip")).to_contain_text("untouched: 2 of 3")
    head = page.get_by_role("columnheader", name="Nodes")
    expect(head).to_have_attribute("aria-sort", "descending")  # as the reader left it
    assert person.errors == []


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_nothing_is_cut_off(
    office: Office, check_axe: CheckAxe, scheme: str, width: int
) -> None:
    person = opened(office, scheme=scheme, width=width)
    check_axe(person.page)
    too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not person.page.evaluate(too_wide)


def test_a_reader_is_not_shown_the_shards(office: Office) -> None:
    page = office.sign_in(Role.READER).open("/dashboard/shards")
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Shards")
