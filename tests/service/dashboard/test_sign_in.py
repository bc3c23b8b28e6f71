"""Signing in and out, and what pages promise to every browser."""

from __future__ import annotations

import re

import pytest

from grapheraser.service.api.keys import COOKIE, Role
from grapheraser.service.api.v1 import events
from grapheraser.service.dashboard.shell import ENTRIES, Entry
from tests.service.dashboard.conftest import LOOKS, CheckAxe, Office

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


def test_a_wrong_key_is_told_so_and_the_right_one_lets_in(office: Office) -> None:
    person = office.visitor()
    page = person.sign_in("ge_000000000000_" + "A" * 43)
    expect(page.get_by_role("alert")).to_contain_text("This key is not valid")
    expect(page).to_have_url(re.compile("/dashboard/sign-in"))
    person.errors.clear()  # the browser notes the status 401
    page = person.sign_in(office.api.keys[Role.AUDITOR])
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert person.errors == []


def test_whoever_has_no_session_is_led_back_after_signing_in(office: Office) -> None:
    person = office.visitor()
    page = person.open("/dashboard/shards")
    expect(page).to_have_url(re.compile("/dashboard/sign-in"))
    page.get_by_label("API key").fill(office.api.keys[Role.OPERATOR])
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/dashboard/shards$"))


@pytest.mark.parametrize("role", Role)
def test_the_navigation_offers_what_the_role_may_see(office: Office, role: Role) -> None:
    page = office.sign_in(role).page
    links = page.get_by_role("navigation").get_by_role("link").all_inner_texts()
    assert links == [entry.title for entry in ENTRIES if role in entry.roles]


def test_signing_out_ends_the_session_in_all_windows(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "REMEMBERED", 0.1)
    person = office.sign_in()
    other = office.another_window(person)
    expect(other.open("/dashboard").locator("#live")).to_have_text("Live")
    cookies = person.page.context.cookies()
    person.page.get_by_role("button", name="Sign out").click()
    expect(person.page.get_by_label("API key")).to_be_visible()
    expect(other.page.get_by_label("API key")).to_be_visible()  # by itself
    token = next(cookie["value"] for cookie in cookies if cookie["name"] == COOKIE)
    stale = office.api.client.get("/api/v1/model", headers={"Cookie": f"{COOKIE}={token}"})
    assert stale.status_code == 401


def test_the_first_key_press_leads_past_the_navigation(office: Office) -> None:
    page = office.sign_in().page
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_revoked_key_ends_the_session(office: Office) -> None:
    made, text = office.api.parts.keys.create("temporary", Role.AUDITOR)
    person = office.visitor()
    page = person.sign_in(text)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.goto("about:blank")  # the page would notice by itself, and leave while another is opened
    assert office.api.call("DELETE", f"/api/v1/keys/{made.id}").status_code == 204
    expect(person.open("/dashboard").get_by_label("API key")).to_be_visible()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_pages_are_quiet_and_ask_no_other_host(office: Office, entry: Entry) -> None:
    person = office.sign_in()
    person.open(entry.path)
    person.page.wait_for_load_state("load")
    assert person.errors == []
    assert person.elsewhere == []


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_on_the_sign_in_page(
    office: Office, check_axe: CheckAxe, scheme: str, width: int
) -> None:
    person = office.visitor(scheme, width)
    check_axe(person.open("/dashboard/sign-in"))
    check_axe(person.sign_in("nonsense"))


def test_a_link_signs_in_once_and_leaves_no_token_behind(office: Office) -> None:
    token = office.api.parts.sign_in_links.issue(office.api.keys[Role.OPERATOR])
    page = office.visitor().open(f"/dashboard/sign-in#once={token}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert token not in page.url
    late = office.visitor().open(f"/dashboard/sign-in#once={token}")
    expect(late.get_by_role("alert")).to_contain_text("This link was used already")
    expect(late.get_by_label("API key")).to_be_visible()
