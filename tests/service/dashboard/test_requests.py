"""The pages of requests, as people use them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from grapheraser.receipts import Part
from grapheraser.receipts.keys import PublicKey
from grapheraser.service.api.keys import Role
from tests.cli.commands import data
from tests.service.dashboard.conftest import LOOKS, CheckAxe, Office

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


def training_node(office: Office) -> int:
    """A node that is there, and that nobody has asked to forget."""
    return int(office.api.service.served.now.model.graph_.train_nodes[-1])


def failed(office: Office) -> str:
    """The id of a request that can't succeed."""
    changes = [{"set_labels": {"nodes": [999_999], "y": [1]}}]
    made = office.api.call("POST", "/api/v1/updates", json={"changes": changes}).json()
    return office.done(str(made["id"]), "failed")


def completed(office: Office, role: Role = Role.OPERATOR) -> str:
    """The id of a request that was carried out."""
    made = office.api.submit(role, nodes=[training_node(office)]).json()
    return office.done(str(made["id"]))


def test_a_person_asks_to_forget_a_node_and_watches_until_it_is_completed(office: Office) -> None:
    person, node = office.sign_in(), training_node(office)
    page = person.open("/dashboard/requests")
    page.get_by_role("button", name="Ask to forget").click()
    page.get_by_label("Which").fill(str(node))
    page.get_by_role("button", name="Forget it").click()
    expect(page).to_have_url(re.compile("/dashboard/requests/[0-9a-f]{32}$"))
    expect(page.locator("#request .state").first).to_contain_text("completed")
    steps = page.locator(".steps li")
    expect(steps).to_have_count(6)
    expect(page.locator(".steps li.done")).to_have_count(6)
    assert not office.api.service.served.now.model.graph_.contains([node]).any()
    assert (person.errors, person.elsewhere) == ([], [])


def test_every_step_is_seen_as_it_happens(office: Office) -> None:
    """The page is open before the worker begins; nobody reloads it."""
    api = office.api
    api.service.worker.stop()
    made = api.submit(Role.OPERATOR, nodes=[training_node(office)]).json()
    page = office.sign_in(Role.AUDITOR).open(f"/dashboard/requests/{made['id']}")
    expect(page.locator(".steps li.done")).to_have_count(1)
    expect(page.locator(".steps li.next")).to_contain_text("planned")
    expect(page.locator("#live")).to_have_text("Live")
    api.service.worker.start()
    expect(page.locator(".steps li.done")).to_have_count(6)
    expect(page.locator("#request .state").first).to_contain_text("completed")


def test_a_refused_request_shows_why(office: Office) -> None:
    page = office.sign_in(Role.OPERATOR).open("/dashboard/requests#new")
    page.get_by_label("Which").fill("ada")
    page.get_by_role("button", name="Forget it").click()
    said = page.get_by_role("dialog").get_by_role("alert")
    expect(said).to_contain_text("The nodes of this run have ids")
    page.get_by_label("What").select_option("a subject")
    page.get_by_label("Which").fill("nobody@example.org")
    page.get_by_role("button", name="Forget it").click()
    expect(said).to_contain_text("subject")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_an_edge_is_forgotten_and_its_ends_stay(office: Office) -> None:
    graph = office.api.service.served.now.model.graph_
    node = int(graph.train_nodes[-2])
    other = int(graph.neighbours(node)[0])
    page = office.sign_in(Role.REQUESTER).open("/dashboard/requests#new")
    page.get_by_label("What").select_option("edges")
    page.get_by_label("Which").fill(f"{node} - {other}")
    page.keyboard.press("Enter")
    expect(page.locator("#request .state").first).to_contain_text("completed")
    expect(page.locator("#request")).to_contain_text("Forget 1 edge")
    now = office.api.service.served.now.model.graph_
    assert other not in now.neighbours(node).tolist()
    assert now.contains([node, other]).all()


def test_an_id_that_a_script_would_round_is_not_sent(office: Office) -> None:
    person = office.sign_in(Role.REQUESTER)
    page = person.open("/dashboard/requests#new")
    before = len(office.api.parts.queue.list().requests)
    page.get_by_label("Which").fill(str(2**53 + 1))
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("too large")
    assert len(office.api.parts.queue.list().requests) == before


def test_a_failed_request_says_why_and_what_to_do_and_is_cancelled(office: Office) -> None:
    person, name = office.sign_in(), failed(office)
    page = person.open(f"/dashboard/requests/{name}")
    expect(page.locator("#request .alert")).to_contain_text("graphs that are not in the run")
    expect(page.locator("#request .alert")).to_contain_text("Cancel it")
    page.get_by_role("button", name="Try again now").click()
    expect(page.locator("#request")).to_contain_text("2 attempts")
    # Everything that happened to it, event by event.
    expect(page.locator("#history li").first).to_contain_text("received")
    expect(page.locator("#history li").filter(has_text="failed")).to_have_count(2)
    page.get_by_role("button", name="Cancel the request").click()
    page.get_by_role("button", name="No", exact=True).click()
    expect(page.locator("#request .state").first).to_contain_text("failed")
    page.get_by_role("button", name="Cancel the request").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.locator("#request .state").first).to_contain_text("cancelled")
    expect(page.get_by_role("button", name="Cancel the request")).to_have_count(0)
    assert person.errors == []


def test_requests_are_listed_and_filtered(office: Office) -> None:
    bad, good = failed(office), completed(office)
    page = office.sign_in(Role.AUDITOR).open("/dashboard/requests")
    expect(page.get_by_role("link", name=good[:8])).to_be_visible()
    page.get_by_role("link", name=re.compile("^Failed")).click()
    expect(page.get_by_role("link", name=bad[:8])).to_be_visible()
    expect(page.get_by_role("link", name=good[:8])).to_have_count(0)
    page.get_by_label("Kind").select_option("erasures")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No request is like that")).to_be_visible()
    page.get_by_role("link", name="Show all requests").click()
    page.get_by_label("Kind").select_option("erasures")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name=good[:8])).to_be_visible()
    expect(page.get_by_role("link", name=bad[:8])).to_have_count(0)


def test_two_windows_stay_in_step(office: Office) -> None:
    first = office.sign_in()
    second = office.another_window(first)
    second.open("/dashboard/requests")
    first.open("/dashboard")
    for person in (first, second):
        expect(person.page.locator("#live")).to_have_text("Live")
    name = completed(office)
    for person in (first, second):
        row = person.page.get_by_role("row").filter(has_text=name[:8])
        expect(row).to_contain_text("completed")


def test_the_file_that_is_downloaded_is_taken_by_the_command_and_by_the_audit_page(
    office: Office, tmp_path: Path
) -> None:
    nodes = office.api.service.served.now.model.graph_.train_nodes[-2:].tolist()
    made = office.api.submit(Role.REQUESTER, nodes=nodes).json()
    name = office.done(str(made["id"]))
    person = office.sign_in(Role.REQUESTER)
    page = person.open(f"/dashboard/requests/{name}")
    with page.expect_download() as told:
        page.get_by_role("link", name="Download the receipt").click()
    file = tmp_path / told.value.suggested_filename
    told.value.save_as(file)
    data("keys", "--export", tmp_path / "operator.pub")
    found = data("receipt", "verify", file, "--key", tmp_path / "operator.pub")
    assert found["valid"]
    about = [one["about"] for one in found["receipts"]]
    assert sorted(int(one["ids"][0]) for one in about) == sorted(nodes)
    page = office.sign_in(Role.AUDITOR).open("/dashboard/audit")
    page.get_by_label("Choose a file").set_input_files(file)
    expect(page.locator("#checked")).to_contain_text("The receipt is valid")
    for node in nodes:
        expect(page.locator("#checked")).to_contain_text(f"Forget node {node}")
    assert (person.errors, person.elsewhere) == ([], [])


def test_a_receipt_is_downloaded_printed_and_destroyed(office: Office, keys: Path) -> None:
    name, person = completed(office, Role.REQUESTER), office.sign_in(Role.REQUESTER)
    page = person.open(f"/dashboard/requests/{name}")
    page.get_by_text("Its parts").click()
    with page.expect_download() as told:
        page.get_by_role("link", name="part 1").click()
    public = PublicKey.read(office.api.call("GET", "/api/v1/log/keys").text)
    Part.from_json(Path(told.value.path()).read_text()).check(public)
    page.get_by_role("link", name="Print").click()
    expect(page.get_by_role("heading", name="Receipt", exact=True)).to_be_visible()
    expect(page.get_by_text("forget node").first).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Destroy").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_text("There is nothing to collect")).to_be_visible()
    assert (person.errors, person.elsewhere) == ([], [])


def test_an_auditor_is_offered_nothing_that_changes_something(office: Office) -> None:
    bad, good = failed(office), completed(office)
    page = office.sign_in(Role.AUDITOR).open("/dashboard/requests")
    expect(page.get_by_role("button", name="Ask to forget")).to_have_count(0)
    for name in (bad, good):
        page.goto(f"{office.url}/dashboard/requests/{name}")
        expect(page.get_by_role("button")).to_have_text(["◐", "Sign out"])
        expect(page.get_by_role("link", name="Download")).to_have_count(0)


def test_a_requester_sees_their_own_and_may_not_retry(office: Office) -> None:
    theirs, own = completed(office), completed(office, Role.REQUESTER)
    page = office.sign_in(Role.REQUESTER).open("/dashboard/requests")
    expect(page.get_by_role("link", name=own[:8])).to_be_visible()
    expect(page.get_by_role("link", name=theirs[:8])).to_have_count(0)
    page.goto(f"{office.url}/dashboard/requests/{theirs}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Unknown request")


def test_what_was_never_there_is_said_so(office: Office) -> None:
    made = office.api.submit(Role.OPERATOR, nodes=[999_999]).json()
    name = office.done(str(made["id"]))
    page = office.sign_in().open(f"/dashboard/requests/{name}")
    expect(page.locator(".alert.note")).to_contain_text("Nothing of it is in the run")
    expect(page.locator(".steps li")).to_have_count(4)


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing(office: Office, check_axe: CheckAxe, scheme: str, width: int) -> None:
    bad, good = failed(office), completed(office)
    person = office.sign_in(scheme=scheme, width=width)
    paths = ("", f"/{bad}", f"/{good}", f"/{good}/receipt", "?stage=cancelled&kind=update", "#new")
    for path in paths:
        page = person.open(f"/dashboard/requests{path}")
        check_axe(page)
        assert fits(page), path
    assert person.errors == []


def fits(page: Any) -> bool:
    """Whether nothing is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
