"""A browser, a served run on a small graph, and people who sign in.

Where Playwright, axe or Chromium is missing, tests that need a browser are skipped.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grapheraser as ge
from grapheraser.service.api.keys import Role
from tests.service.api.conftest import Api, opened
from tests.strategies import small_graph

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

WIDE, NARROW = 1400, 390
LOOKS = [(scheme, width) for scheme in ("light", "dark") for width in (WIDE, NARROW)]
_PATIENCE = 60_000  # milliseconds: kernels may have to be compiled first
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, once for all tests."""
    sync = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    found = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if found is None:
        pytest.skip("Chromium is not installed")
    root = ["--no-sandbox"] if os.getuid() == 0 else []
    # WebGL is drawn by the processor, so that pictures are the same everywhere.
    drawn = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
    sync.expect.set_options(timeout=_PATIENCE)
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*root, *drawn])
        yield browser
        browser.close()


@dataclass
class Person:
    """Somebody at a browser window of their own.

    Attributes:
        page: what they see.
        url: of the service.
        errors: of scripts, in the console and by the content-security policy.
        elsewhere: URLs of other hosts that the page asked for.
    """

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def open(self, path: str) -> Page:
        """Go to a page of the service."""
        self.page.goto(f"{self.url}{path}")
        return self.page

    def sign_in(self, key: str) -> Page:
        """Type a key into the sign-in page, and press the button."""
        self.open("/dashboard/sign-in")
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        return self.page


@dataclass
class Office:
    """A served run, whose worker works, and the people who look at it.

    Attributes:
        api: the service, with a key for every role.
        browser: of everybody.
        people: who have a window.
    """

    api: Api
    browser: Browser
    people: list[BrowserContext] = field(default_factory=list)

    @property
    def url(self) -> str:
        return str(self.api.client.base_url).rstrip("/")

    def visitor(self, scheme: str = "light", width: int = WIDE) -> Person:
        """Somebody who has not signed in."""
        height = 900 if width == WIDE else 844
        options: dict[str, Any] = {"color_scheme": scheme, "reduced_motion": "reduce"}
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True, **options
        )
        context.set_default_timeout(_PATIENCE)
        self.people.append(context)
        return Person(context.new_page(), self.url)

    def sign_in(self, role: Role = Role.OPERATOR, **looks: Any) -> Person:
        """Somebody with this role, who has signed in."""
        person = self.visitor(**looks)
        person.sign_in(self.api.keys[role]).wait_for_url("**/dashboard")
        return person

    def another_window(self, person: Person) -> Person:
        """A second window of the same person."""
        return Person(person.page.context.new_page(), self.url)

    def done(self, name: str, state: str = "completed") -> str:
        """Wait until a request is in a state; the queue is asked, which knows no rate."""
        while self.api.parts.queue.get(name).state.value != state:
            assert self.api.service.worker.is_alive
            time.sleep(0.02)
        return name

    def leave(self) -> None:
        """Close all windows."""
        for context in self.people:
            context.close()
        self.people.clear()


@pytest.fixture(scope="session")
def fitted_small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "people"
    ge.GraphEraser(num_shards=3, epochs=3).fit(small_graph()).save(path)
    return path


@pytest.fixture(scope="module")
def served(
    browser: Browser, fitted_small: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Office]:
    """One service for all tests of a module, with its worker at work."""
    folder = tmp_path_factory.mktemp("served") / "people"
    shutil.copytree(fitted_small, folder)
    with opened(folder, window=0.05, poll_seconds=0.05) as api:
        api.service.start()
        yield Office(api, browser)


@pytest.fixture
def office(served: Office) -> Iterator[Office]:
    """The service of the module; windows are closed after each test."""
    yield served
    served.leave()


CheckAxe = Callable[["Page"], None]


@pytest.fixture(scope="session")
def check_axe() -> CheckAxe:
    """Fails where axe-core finds a violation on a page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")
    looker = axe.Axe()

    def check(page: Page) -> None:
        page.wait_for_load_state("load")
        page.wait_for_selector("main h1")  # a page that is being left has none
        found = looker.run(page)
        assert found.violations_count == 0, found.generate_report()

    return check
