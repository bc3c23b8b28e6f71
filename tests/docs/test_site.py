"""The site builds without a warning, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest

from tests.docs.pages import NOTEBOOKS, PAGES, ROOT

pytest.importorskip("material", reason="needs the extra 'docs'")
from tools.site import navigation, on_page_markdown, schemes

# What a browser fetches by itself, by element: the attribute, and which `rel` of a link.
_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_RELS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload"}


class Loads(HTMLParser):
    """Collects what a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        wanted = tag != "link" or bool(_RELS & set((given.get("rel") or "").split()))
        target = given.get(_LOADS.get(tag, ""))
        if target and wanted:
            self.found.append(target)


def loads(html: str) -> list[str]:
    """What a page makes a browser fetch from elsewhere."""
    parser = Loads()
    parser.feed(html)
    styles = re.findall(r"(?:url\(|@import )[\"']?([^\"')]+)", html)
    return [url for url in (*parser.found, *styles) if re.match(r"(?:https?:)?//", url)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.long
def test_every_page_of_the_documentation_is_on_the_site(site: Path) -> None:
    for page in (*PAGES, *NOTEBOOKS):
        if page.is_relative_to(ROOT / "docs"):
            place = page.relative_to(ROOT / "docs").with_suffix(".html")
            name = "index.html" if page.name == "README.md" else place.name
            assert (site / place.parent / name).is_file(), place


@pytest.mark.long
def test_the_page_for_what_is_not_there_leads_to_pages_that_are(site: Path) -> None:
    text = (site / "404.html").read_text()
    links = set(re.findall(r"""\b(?:href|src)=["']?([^"'\s>]+)""", text))
    own = {link.partition("#")[0] for link in links if not re.match(r"https?:|mailto:|#", link)}
    assert len(own) > 20
    assert [link for link in own if link and not (site / link).is_file()] == []
    assert not re.search(r"\"(base|search)\": \"/", text)


@pytest.mark.long
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    assert {str(page): found for page in pages if (found := loads(page.read_text()))} == {}
    for style in site.rglob("*.css"):
        assert loads(style.read_text()) == [], style
    # The theme would fetch this one where a page has a diagram of it.
    assert [page for page in pages if 'class="mermaid"' in page.read_text()] == []


def test_what_is_loaded_from_elsewhere_is_found() -> None:
    page = (
        '<script src="https://cdn.example/x.js"></script><link rel="stylesheet" href="//a.example">'
        '<a href="https://example.org">a link</a><link rel="canonical" href="https://b.example">'
        '<style>@import "https://fonts.example/f.css";</style><img src="here.png">'
    )
    assert loads(page) == ["https://cdn.example/x.js", "//a.example", "https://fonts.example/f.css"]


def test_the_navigation_is_that_of_the_index() -> None:
    text = "# T\n\n## One\n\n| | |\n|---|---|\n| [A](a.md) | x |\n\n## Two\n\n### Part\n\n"
    text += "| [B](b.ipynb) | y |\n| [C](../SECURITY.md) | z |\n"
    assert navigation(text) == [
        {"Home": "README.md"},
        {"One": "a.md"},
        {"Two": [{"Part": [{"B": "b.md"}, {"C": "project/SECURITY.md"}]}]},
    ]


def test_links_are_brought_to_the_form_of_the_site() -> None:
    class Page:
        """As much of a page as the hook looks at."""

        def __init__(self, place: str) -> None:
            self.file = type("File", (), {"src_uri": place})()
            self.meta: dict[str, object] = {}

    def seen(text: str, place: str) -> str:
        return on_page_markdown(text, page=cast(Any, Page(place)))

    assert seen("[a](tutorials/b.ipynb)", "start.md") == "[a](tutorials/b.md)"
    assert seen("[a](../SECURITY.md#x)", "start.md") == "[a](project/SECURITY.md#x)"
    assert seen("[a](docs/limits.md)", "project/CHANGELOG.md") == "[a](../limits.md)"
    assert seen("[a](paper/report.html)", "results/README.md") == "[a](paper/figures.html)"
    assert seen("[a](../examples/x.py) ![b](images/c.svg)", "start.md") == "a ![b](images/c.svg)"
    assert seen("```text\n[a](b.ipynb)\n```", "start.md") == "```text\n[a](b.ipynb)\n```"


def test_the_colours_are_those_of_all_pages() -> None:
    text = schemes((ROOT / "src/grapheraser/reports/templates/tokens.css").read_text())
    light, dark = text.split('[data-md-color-scheme="slate"]')
    assert "--paper: #fff" in light
    assert "--paper: #14171c" in dark
    assert light.rpartition("color-scheme: ")[2].startswith("light;")
    assert dark.rpartition("color-scheme: ")[2].startswith("dark;")
    assert text.count("{") == text.count("}") == 2
