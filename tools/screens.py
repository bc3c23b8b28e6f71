"""Take pictures of every page of the dashboard, for the guide and the README.

python -m tools.screens

Starts `grapheraser demo --serve`, does what a visitor would do, and writes PNG files to
docs/images/dashboard. Needs Chromium, Playwright and Pillow.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageChops, ImageStat
from playwright.sync_api import sync_playwright

import grapheraser as ge

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images" / "dashboard"
WIDE, NARROW = 1400, 390
COLOURS, LARGEST = (256, 128, 64, 32), 160_000
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_DRAWN = "performance.getEntriesByName('graph drawn').length > 0"


@contextmanager
def served(folder: Path) -> Iterator[dict[str, str]]:
    """The demonstration in a process of its own: where it is, and its key."""
    command = [sys.executable, "-m", "grapheraser", "demo", "--serve", "--no-open", "--json"]
    environment = {**os.environ, "GRAPHERASER_KEYS": str(folder / "keys")}
    out = folder / "out.json"
    with out.open("w") as file:
        process = subprocess.Popen(command, stdout=file, env=environment)
    try:
        while process.poll() is None:
            try:
                yield json.loads(out.read_text())
                return
            except json.JSONDecodeError:
                time.sleep(0.2)
        raise SystemExit("the demonstration ended by itself")
    finally:
        process.terminate()
        process.wait(60)


def take(page: Page, name: str, *, whole: bool = False) -> None:
    """Write what a page looks like, with few colours, so that it is small."""
    content = page.screenshot(full_page=whole, animations="disabled", caret="hide")
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    small, colours = next(
        (found, colours)
        for colours in COLOURS
        if len(found := _reduced(picture, colours)) <= LARGEST or colours == COLOURS[-1]
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.png").write_bytes(small)
    print(f"{name:<22} {len(small) / 1000:6.0f} kB, {colours} colours")


def _reduced(picture: Image.Image, colours: int) -> bytes:
    """The picture with so many colours, chosen in the way that changes it least."""

    def distance(one: Image.Image) -> float:
        return sum(ImageStat.Stat(ImageChops.difference(picture, one.convert("RGB"))).sum2)

    # Without dithering: dots of other colours would be larger, and uglier.
    ways = (Image.Quantize.MEDIANCUT, Image.Quantize.MAXCOVERAGE)
    made = [picture.quantize(colours, way, kmeans=1, dither=Image.Dither.NONE) for way in ways]
    out = io.BytesIO()
    min(made, key=distance).save(out, "PNG", optimize=True)
    return out.getvalue()


def opened(browser: Browser, url: str, key: str, *, width: int, scheme: str) -> Page:
    """The window of an operator who has signed in."""
    size: Any = {"width": width, "height": 900 if width == WIDE else 844}
    looks: Any = {"viewport": size, "color_scheme": scheme, "reduced_motion": "reduce"}
    page = browser.new_context(**looks, base_url=url).new_page()
    page.goto("/dashboard/sign-in")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/dashboard")
    return page


def settle(page: Page, path: str) -> None:
    """Open a page and wait until it shows what there is to show."""
    page.goto(path)
    if path.endswith("/audit"):
        page.locator("#verdict[data-state=good]").wait_for()
    if path.endswith("/shards"):
        page.locator("#shards > [data-scored=yes]").wait_for(timeout=60_000)
    if "/graph" in path:
        while not page.evaluate(_DRAWN):  # waiting by a function would need `unsafe-eval`
            page.wait_for_timeout(100)
    page.wait_for_timeout(1000)


def story(browser: Browser, url: str, key: str, client: ge.Client, folder: Path) -> None:
    """Do as a visitor would, from the sign-in page to the proofs."""
    page = browser.new_page(
        viewport={"width": WIDE, "height": 900}, reduced_motion="reduce", base_url=url
    )
    page.goto("/dashboard/sign-in")
    take(page, "sign-in")
    page = opened(browser, url, key, width=WIDE, scheme="light")
    take(page, "first-step")
    button = page.locator("button[data-forget]")
    node = int(button.get_attribute("data-forget") or 0)
    settle(page, f"/dashboard/graph#node={node}")
    page.get_by_role("heading", name=f"Node {node}", exact=True).wait_for()
    page.get_by_role("button", name="Select to forget").click()
    page.locator("#ask:enabled").wait_for()
    page.get_by_role("button", name="Fit").click()
    page.wait_for_timeout(700)
    take(page, "graph")
    page.goto("/dashboard")
    button.click()
    page.wait_for_url("**/dashboard/requests/*")
    name = page.url.rpartition("/")[2]
    client.wait(name)
    receipt = folder / "receipt.json"
    receipt.write_text(client.receipt(name)[0].to_json())
    more(client, node)
    page.reload()
    page.wait_for_timeout(700)
    take(page, "request")
    settle(page, f"/dashboard/requests/{name}/receipt")
    take(page, "receipt")
    for path in ("", "/requests", "/shards"):
        settle(page, f"/dashboard{path}")
        take(page, path.strip("/") or "overview")
    settle(page, "/dashboard/audit")
    page.set_input_files("#receipt", receipt)
    page.get_by_role("button", name="Verify", exact=True).click()
    page.locator("#job h3").wait_for(timeout=120_000)
    page.locator("button[data-prove='3']").click()
    page.wait_for_timeout(500)
    take(page, "audit", whole=True)
    others(browser, url, key, node)


def more(client: ge.Client, node: int) -> None:
    """Some history: single nodes, several, features, and what is not there any more."""
    asked: list[dict[str, list[int]]] = [{"nodes": [node + at]} for at in (1, 5, 9, 16)]
    asked += [{"nodes": [node + 20, node + 21, node + 22]}, {"features": [node + 30]}]
    for content in [*asked, {"nodes": [node]}]:
        client.wait(client.submit(content)["id"])


def others(browser: Browser, url: str, key: str, node: int) -> None:
    """Take them again at phone width, and in dark."""
    del node
    for width, scheme, ending in ((NARROW, "light", "narrow"), (WIDE, "dark", "dark")):
        page = opened(browser, url, key, width=width, scheme=scheme)
        paths = {"": "overview", "/graph": "graph", "/shards": "shards", "/audit": "audit"}
        paths |= {"/requests": "requests"} if width == NARROW else {}
        for path, name in paths.items():
            settle(page, f"/dashboard{path}")
            take(page, f"{name}-{ending}")


def main() -> None:
    """Take all pictures."""
    chromium = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if chromium is None:
        raise SystemExit("needs Chromium")
    root = ["--no-sandbox"] if os.getuid() == 0 else []
    drawn = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder)) as found,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=[*root, *drawn])
        client = ge.Client(found["url"], found["key"], timeout=60)
        story(browser, found["url"], found["key"], client, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
