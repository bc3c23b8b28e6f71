"""The page of the audit: the browser checks the log by itself, and notices what was changed."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from grapheraser.receipts.tree import (
    check_consistency,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_of,
)
from grapheraser.service.api.keys import Role
from tests.service.dashboard.conftest import LOOKS, CheckAxe, Office, Person
from tests.service.dashboard.test_shards import forget

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


@pytest.fixture(scope="module", autouse=True)
def history(served: Office) -> None:
    """Some receipts to look at."""
    for _ in range(5):
        forget(served)


def opened(office: Office, role: Role = Role.AUDITOR, **looks: Any) -> Person:
    person = office.sign_in(role, **looks)
    person.open("/dashboard/audit")
    return person


def check(page: Page, name: str) -> Any:
    return page.locator(f"[data-check={name}]")


def tampered(page: Page, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the log on its way from the service to the browser."""

    def answer(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        change(body)
        route.fulfill(response=response, json=body)

    page.route("**/api/v1/log?*", answer)


def edited(entry: dict[str, Any], **fields: Any) -> None:
    """Let a receipt say something else."""
    statement = json.loads(base64.b64decode(entry["envelope"]["payload"]))
    statement["predicate"].update(fields)
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"))
    entry["envelope"]["payload"] = base64.b64encode(text.encode()).decode()


def test_the_browser_finds_that_the_log_holds(office: Office) -> None:
    person = opened(office)
    page = person.page
    expect(page.locator("#verdict")).to_contain_text("The log holds")
    size = office.api.service.served.now.version
    for name in ("hash", "chain", "signatures", "root", "checkpoint", "grown"):
        expect(check(page, name)).to_have_attribute("data-state", "good")
    expect(page.locator("table.log tbody tr")).to_have_count(size)
    leaves = [receipt.leaf for receipt in office.api.parts.log.read()[0]]
    expect(check(page, "root")).to_contain_text(root_of(leaves).hex()[:16])
    assert person.errors == []
    assert person.elsewhere == []


def test_every_entry_can_be_proved_to_be_in_the_tree(office: Office) -> None:
    page = opened(office).page
    expect(page.locator("#verdict")).to_contain_text("The log holds")
    leaves = [receipt.leaf for receipt in office.api.parts.log.read()[0]]
    for number in (1, 3, len(leaves)):
        page.get_by_role("button", name=f"Prove that receipt {number} is in the log").click()
        hashes = len(inclusion_proof(leaves, number - 1))
        row = page.locator("table.log tbody tr").nth(len(leaves) - number)
        words = "hash leads" if hashes == 1 else "hashes lead"
        expect(row).to_contain_text(f"✓ {hashes} {words} to the root")


def test_a_receipt_that_was_changed_on_the_way_is_found(office: Office) -> None:
    person = office.sign_in(Role.AUDITOR)
    page = person.page
    tampered(page, lambda body: edited(body["entries"][1], counts={"nodes": 7}))
    person.open("/dashboard/audit")
    expect(page.locator("#verdict")).to_contain_text("The log is broken")
    size = office.api.service.served.now.version
    after, changed = page.locator("tr.broken").all()  # the newest comes first
    expect(changed.get_by_role("rowheader")).to_have_text("2")
    expect(changed).to_contain_text("its content was changed")
    expect(after).to_contain_text("it does not follow from the receipt before it")
    for name in ("hash", "signatures", "root"):
        expect(check(page, name)).to_have_attribute("data-state", "bad")
    expect(check(page, "checkpoint")).to_have_attribute("data-state", "good")
    expect(page.locator("table.log tbody tr")).to_have_count(size)


def test_a_receipt_that_was_changed_with_its_digest_breaks_the_chain(office: Office) -> None:
    def change(body: dict[str, Any]) -> None:
        entry = body["entries"][0]
        edited(entry, completed_at="2020-01-01T00:00:00+00:00")
        text = json.dumps(entry["envelope"], sort_keys=True, separators=(",", ":"))
        entry["digest"] = hashlib.sha256(text.encode()).hexdigest()

    person = office.sign_in(Role.AUDITOR)
    tampered(person.page, change)
    page = person.open("/dashboard/audit")
    expect(page.locator("#verdict")).to_contain_text("The log is broken")
    expect(check(page, "hash")).to_have_attribute("data-state", "good")
    for name in ("chain", "signatures", "root"):
        expect(check(page, name)).to_have_attribute("data-state", "bad")


def test_a_receipt_that_is_left_out_is_missed(office: Office) -> None:
    def change(body: dict[str, Any]) -> None:
        body["entries"].pop()
        body["size"] -= 1

    person = office.sign_in(Role.AUDITOR)
    tampered(person.page, change)
    page = person.open("/dashboard/audit")
    expect(page.locator("#verdict")).to_contain_text("The log is broken")
    expect(check(page, "root")).to_have_attribute("data-state", "bad")


def test_a_log_that_shrank_since_this_browser_looked_is_noticed(office: Office) -> None:
    person = opened(office)
    page = person.page
    expect(page.locator("#verdict")).to_contain_text("The log holds")
    key = page.evaluate("Object.keys(localStorage).find((name) => name.startsWith('grapheraser'))")
    seen = json.loads(page.evaluate("(name) => localStorage.getItem(name)", key))
    assert seen["size"] == office.api.service.served.now.version
    forged = json.dumps({**seen, "root": "00" * 32})
    page.evaluate("([name, value]) => localStorage.setItem(name, value)", [key, forged])
    page.reload()
    expect(check(page, "grown")).to_contain_text("the log was rewritten")
    expect(page.locator("#verdict")).to_contain_text("The log is broken")
    later = json.dumps({**seen, "size": seen["size"] + 3})
    page.evaluate("([name, value]) => localStorage.setItem(name, value)", [key, later])
    page.reload()
    expect(check(page, "grown")).to_contain_text(f"it had {seen['size'] + 3} receipts")


def test_the_log_goes_on_while_one_looks_and_proves_that_it_grew(office: Office) -> None:
    page = opened(office).page
    expect(page.locator("#verdict")).to_contain_text("The log holds")
    before = office.api.service.served.now.version
    forget(office)
    expect(page.locator("table.log tbody tr")).to_have_count(before + 1)
    expect(check(page, "grown")).to_contain_text(f"from {before} to {before + 1}")
    expect(page.locator("#verdict")).to_contain_text(f"{before + 1} receipts")


def test_a_checkpoint_that_was_kept_is_compared(office: Office, tmp_path: Path) -> None:
    note = office.api.call("GET", "/api/v1/log/checkpoint").text
    forget(office)
    page = opened(office).page
    expect(page.locator("#verdict")).to_contain_text("The log holds")
    kept = tmp_path / "checkpoint.txt"
    kept.write_text(note)
    page.set_input_files("#kept", kept)
    size = office.api.service.served.now.version - 1
    expect(page.locator("#compared")).to_contain_text(f"The log had {size} receipts then")
    lines = note.split("\n")
    kept.write_text(
        "\n".join([lines[0], lines[1], base64.b64encode(bytes(32)).decode(), *lines[3:]])
    )
    page.set_input_files("#kept", kept)
    expect(page.locator("#compared")).to_contain_text("No key of the operator signed")


def test_the_log_is_downloaded_as_it_was_checked(office: Office) -> None:
    page = opened(office).page
    expect(page.locator("#verdict")).to_contain_text("The log holds")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the log").click()
    found = json.loads(Path(waiting.value.path()).read_text())
    size = office.api.service.served.now.version
    assert (found["size"], len(found["entries"])) == (size, size)
    exported = office.api.call("GET", "/api/v1/log").json()
    assert found["entries"] == exported["entries"]
    assert found["checkpoint"] == exported["checkpoint"]


def test_the_proofs_of_the_browser_agree_with_those_of_python(office: Office) -> None:
    """Every pair of sizes up to 12: the modules say yes to what is so, and no to anything else."""
    page = opened(office).page
    leaves = [leaf_hash(bytes([n])) for n in range(12)]
    cases = []
    for new in range(1, 13):
        for old in range(1, new + 1):
            proof = consistency_proof(leaves[:new], old)
            roots = root_of(leaves[:old]), root_of(leaves[:new])
            check_consistency(old, new, proof, *roots)
            cases.append([old, new, [p.hex() for p in proof], *(root.hex() for root in roots)])
    script = """async (cases) => {
      const m = await import('/dashboard/static/merkle.js');
      const wrong = [];
      for (const [old, size, proof, was, is] of cases) {
        const parts = proof.map(m.fromHex);
        const [a, b] = [m.fromHex(was), m.fromHex(is)];
        if (!(await m.isConsistent(old, size, parts, a, b))) wrong.push([old, size, 'refused']);
        const other = m.fromHex('00'.repeat(32));
        if (await m.isConsistent(old, size, parts, other, b)) wrong.push([old, size, 'old root']);
        if (await m.isConsistent(old, size, parts, a, other)) wrong.push([old, size, 'new root']);
        const longer = [...parts, other];
        if (await m.isConsistent(old, size, longer, a, b)) wrong.push([old, size, 'longer']);
      }
      return wrong;
    }"""
    assert page.evaluate(script, cases) == []
    paths = []
    for size in range(1, 13):
        for n in range(size):
            way = [part.hex() for part in inclusion_proof(leaves[:size], n)]
            paths.append([n, size, leaves[n].hex(), way, root_of(leaves[:size]).hex()])
    script = """async (cases) => {
      const m = await import('/dashboard/static/merkle.js');
      const wrong = [];
      for (const [index, size, leaf, proof, root] of cases) {
        const given = [m.fromHex(leaf), index, size, proof.map(m.fromHex), m.fromHex(root)];
        if (!(await m.isIncluded(...given))) wrong.push([index, size, 'refused']);
        given[1] = index + 1;
        if (await m.isIncluded(...given)) wrong.push([index, size, 'another place']);
      }
      return wrong;
    }"""
    assert page.evaluate(script, paths) == []


def handed_out(office: Office, **named: Any) -> str:
    node = int(office.api.service.served.now.model.graph_.train_nodes[0])
    name = office.done(office.api.submit(**(named or {"nodes": [node]})).json()["id"])
    text: str = office.api.call("GET", f"/api/v1/requests/{name}/receipt/1").text
    return text


def drop(page: Page, name: str, text: str) -> None:
    """Let a file fall into the page."""
    script = """([name, text]) => {
      const carried = new DataTransfer();
      carried.items.add(new File([text], name, { type: 'application/json' }));
      const zone = document.getElementById('drop');
      for (const kind of ['dragenter', 'dragover', 'drop']) {
        const options = { bubbles: true, cancelable: true, dataTransfer: carried };
        zone.dispatchEvent(new DragEvent(kind, options));
      }
    }"""
    page.evaluate(script, [name, text])


def test_a_receipt_is_dropped_and_verified(office: Office) -> None:
    text = handed_out(office)
    page = opened(office).page
    drop(page, "receipt.json", text)
    result = page.locator("#checked")
    expect(result).to_contain_text("The receipt is valid")
    expect(result).to_contain_text("The node was in the run before and is not after")
    drop(page, "all.json", json.dumps({"request": "x", "parts": [json.loads(text)]}))
    expect(result).to_contain_text("all.json")
    expect(result).to_contain_text("The receipt is valid")


def test_a_receipt_that_shows_no_absence_is_called_signed(
    office: Office, check_axe: CheckAxe
) -> None:
    """Of an edge: all that it shows holds, and that the edge is gone is somebody's word."""
    pair = [int(end) for end in office.api.service.served.now.model.graph_.edges[0]]
    text = handed_out(office, edges=[pair])
    page = opened(office).page
    drop(page, "edge.json", text)
    result = page.locator("#checked")
    expect(result).to_contain_text("The receipt is signed, and in the log")
    expect(result).to_contain_text("the operator's word")
    expect(result).not_to_contain_text("valid")
    assert result.get_attribute("data-state") == "fair"
    check_axe(page)
    node = json.loads(handed_out(office))
    drop(page, "both.json", json.dumps({"request": "x", "parts": [json.loads(text), node]}))
    expect(result).to_contain_text("both.json")
    expect(result).to_contain_text("The receipt is signed, and in the log")


def test_a_forged_receipt_is_refused_with_words(office: Office, tmp_path: Path) -> None:
    forged = json.loads(handed_out(office))
    forged["request"]["about"]["ids"] = ["1"]
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(forged, sort_keys=True, separators=(",", ":")))
    page = opened(office).page
    page.get_by_label("Choose a file").set_input_files(file)
    expect(page.locator("#checked")).to_contain_text("The receipt is not valid")
    expect(page.locator("#checked")).to_contain_text("The receipt does not answer this request.")
    file.write_text("holiday pictures")
    page.get_by_label("Choose a file").set_input_files(file)
    expect(page.locator("#checked")).to_contain_text("Not a readable receipt")


def test_an_auditor_verifies_and_is_offered_no_deletion(office: Office) -> None:
    person = opened(office)
    page = person.page
    page.get_by_role("button", name="Verify and search all files").click()
    expect(page.locator("#job")).to_contain_text("Verified: bit-identical", timeout=60_000)
    expect(page.locator("#job")).to_contain_text("and the checkpoint verified, signed by")
    expect(page.locator("#job")).to_contain_text("nothing left of what was forgotten")
    expect(page.get_by_role("button", name="Verify", exact=True)).to_be_enabled()
    words = page.locator("body").inner_text().lower()
    assert "forget " not in words
    page.reload()  # what was found is there still
    expect(page.locator("#job")).to_contain_text("Verified: bit-identical")
    assert person.errors == []


def test_a_stray_file_is_shown(office: Office) -> None:
    stray = office.api.parts.run / "copy.npy"
    stray.write_bytes(b"left behind")
    page = opened(office).page
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(page.locator("#job")).to_contain_text("stray: copy.npy", timeout=60_000)
    expect(page.locator("#job")).to_have_attribute("data-state", "bad")
    stray.unlink()


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_nothing_is_cut_off(
    office: Office, check_axe: CheckAxe, scheme: str, width: int
) -> None:
    text = handed_out(office)
    person = opened(office, scheme=scheme, width=width)
    page = person.page
    expect(page.locator("#verdict")).to_contain_text("The log holds")
    drop(page, "receipt.json", text)
    expect(page.locator("#checked")).to_contain_text("valid")
    check_axe(page)
    drop(page, "receipt.json", "nonsense")
    expect(page.locator("#checked")).to_contain_text("not valid")
    tampered(page, lambda body: edited(body["entries"][0], sequence=9))
    page.get_by_role("button", name="Check again").click()
    expect(page.locator("#verdict")).to_contain_text("The log is broken")
    check_axe(page)
    too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not page.evaluate(too_wide)
