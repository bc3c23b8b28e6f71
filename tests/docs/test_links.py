"""Links of all pages and notebooks lead somewhere, and to a heading that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import NOTEBOOKS, PAGES, ROOT, anchors, links


def broken(page: Path) -> list[str]:
    """Links of a page that lead nowhere inside the project."""
    found = []
    for link in links(page):
        if link.startswith(("https:", "http:", "mailto:")):
            continue
        place, _, heading = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (heading and heading not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_most_pages_have_links_and_many_name_a_heading() -> None:
    found = [link for page in (*PAGES, *NOTEBOOKS) for link in links(page)]
    assert len(found) > 300
    assert sum("#" in link for link in found) > 100


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `title`, twice\n\n# A title twice\n\n[a](#a-title-twice) [b](#a-title-twice-1) "
        "[c](#nowhere) [d](other.md) `[e](code.md)`\n\n```text\n[f](block.md)\n```\n\n"
        "    [g](indented.md)\n"
    )
    assert broken(page) == ["#nowhere", "other.md"]


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    pages = {page for page in (*PAGES, *NOTEBOOKS) if page.is_relative_to(index.parent)}
    assert sorted(page.name for page in pages - listed - {index}) == []
