"""The overview: what each role sees of model, requests and versions, and that it goes on."""

from __future__ import annotations

import re

import pytest

from grapheraser.service.api.keys import Role
from tests.service.dashboard.conftest import LOOKS, CheckAxe, Office

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


def test_it_begins_empty_and_follows_what_is_published(office: Office) -> None:
    person = office.sign_in()
    page = person.page
    expect(page.get_by_text("No requests yet")).to_be_visible()
    expect(page.locator(".chart")).to_have_count(0)
    before = office.api.service.served.now.model.graph_
    facts = page.locator(".facts")
    expect(facts).to_contain_text(re.compile(rf"Nodes left\s*{before.num_nodes:,}"))
    node = int(before.train_nodes[0])
    office.api.submit(Role.OPERATOR, nodes=[node])
    expect(page.locator(".stage.completed")).to_have_text("1 completed")
    expect(facts).to_contain_text(re.compile(rf"Nodes left\s*{before.num_nodes - 1:,}"))
    expect(facts).to_contain_text(re.compile(r"Version\s*1"))
    expect(page.locator(".chart")).to_have_count(2)
    score = office.api.parts.scores.latest()[-1].f1
    assert score is not None
    expect(facts).to_contain_text(f"{score:.2f}")
    expect(page.get_by_role("region", name="Versions")).to_contain_text("forgot 1 node")
    assert (person.errors, person.elsewhere) == ([], [])


def test_a_reader_sees_the_model_and_no_requests(office: Office) -> None:
    page = office.sign_in(Role.READER).page
    expect(page.get_by_text("Nodes left").first).to_be_visible()
    for words in ("Next deadline", "Median time to forget", "Versions"):
        expect(page.get_by_text(words)).to_have_count(0)
    expect(page.get_by_role("heading", name="Requests")).to_have_count(0)


def test_a_requester_sees_their_own_requests_counted(office: Office) -> None:
    page = office.sign_in(Role.REQUESTER).page
    expect(page.get_by_role("heading", name="Your requests")).to_be_visible()
    expect(page.locator(".stage.completed")).to_have_text("0 completed")
    expect(page.get_by_role("region", name="Versions")).to_have_count(0)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing(
    office: Office, check_axe: CheckAxe, role: Role, scheme: str, width: int
) -> None:
    page = office.sign_in(role, scheme=scheme, width=width).page
    check_axe(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
