"""Hooks of `mkdocs.yml`, for what mkdocs does not do by itself.

Pages stay as they read best in the repository. Their links out of docs/ and to notebooks, the
colours, and the navigation, which docs/README.md has as tables, are brought to the site's form.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from tools.notebooks import as_markdown, read

ROOT = Path(__file__).resolve().parent.parent
TOKENS = ROOT / "src/grapheraser/reports/templates/tokens.css"
# Pages of the repository that are part of the site, and the folder that they get there.
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
FOLDER = "project"
# Reports with figures lie beside their tables, which become a page of the same name.
REPORT, FIGURES = "report.html", "figures.html"

_HEADING = re.compile(r"^(##+) (.*)")
_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)\) \|")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_ABSOLUTE = re.compile(r"""(\b(?:href|src|action)=["']?)/(?!/)(?:\.(?=["'\s>]))?([^"'\s>]*)""")
_BLOCK = re.compile(r":root \{(.*?)\n *\}", re.S)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from the tables of the first page."""
    config.nav = navigation((ROOT / "docs" / "README.md").read_text())
    return config


def navigation(text: str) -> list[Any]:
    """Sections and pages of an index, in mkdocs' form; a section of one page is that page."""
    nav: list[Any] = [{"Home": "README.md"}]
    section: list[Any] = []
    group = section
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            group = []
            if heading[1] == "##":
                section = group
                nav.append({heading[2]: section})
            else:
                section.append({heading[2]: group})
        elif row := _ROW.match(line):
            title, target = row[1].replace("`", ""), row[2]
            group.append({title: str(_on_site(posixpath.normpath(f"docs/{target}")))})
    return [_flat(entry) for entry in nav if next(iter(entry.values()))]


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    ((title, pages),) = entry.items()
    if isinstance(pages, list) and len(pages) == 1 and isinstance(pages[0], dict):
        (target,) = pages[0].values()
        return {title: target} if isinstance(target, str) else entry
    return entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add stylesheets, pages of the repository, and a page for every notebook."""
    for name in PROJECT:
        files.append(File.generated(config, f"{FOLDER}/{name}", content=(ROOT / name).read_text()))
    for report in sorted((ROOT / "docs").glob(f"results/*/{REPORT}")):
        place = _on_page(report.relative_to(ROOT / "docs").as_posix())
        files.append(File.generated(config, place, abs_src_path=str(report)))
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text = as_markdown(read(Path(str(notebook.abs_src_path))), notebook.name)
        files.append(File.generated(config, _on_page(notebook.src_uri), content=text))
    assets = {
        "tokens.css": schemes(TOKENS.read_text()),
        "site.css": (ROOT / "tools/site.css").read_text(),
        "iframe-worker.js": (ROOT / "tools/site.js").read_text(),
    }
    for name, content in assets.items():
        files.append(File.generated(config, f"assets/{name}", content=content))
    return files


def on_post_template(output_content: str, *, template_name: str, config: MkDocsConfig) -> str:
    """Let the page for what is not there lead to pages that are, also where there is no server.

    A server shows it at any address, so mkdocs makes its links absolute: of `SITE_URL`, if that is
    set. Without, the site is read from a folder, in which this page is beside the first one.
    """
    if template_name != "404.html" or config.site_url:
        return output_content
    found = _ABSOLUTE.sub(lambda link: link[1] + (link[2] or "index.html"), output_content)
    return (
        found.replace('"base": "/"', '"base": "."')
        .replace('new URL("/",', 'new URL(".",')
        .replace('"search": "/', '"search": "')
    )


def schemes(tokens: str) -> str:
    """The colours of all pages, by the reader's choice on this site."""
    light, dark = _BLOCK.findall(tokens)
    # Drawings in pages follow this, not the system.
    return (
        f'[data-md-color-scheme="default"] {{{light}\n  color-scheme: light;\n}}\n'
        f'[data-md-color-scheme="slate"] {{{light}\n{dark}\n  color-scheme: dark;\n}}\n'
    )


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Bring links to the site's form, but not in code."""
    here = page.file.src_uri
    if here == "README.md":
        page.meta["hide"] = ["navigation"]  # which would show this page alone
    origin = "" if here.startswith(f"{FOLDER}/") else "docs/" + posixpath.dirname(here)
    parts, last = [], 0
    for code in _CODE.finditer(markdown):
        parts += [_relinked(markdown[last : code.start()], origin, here), code[0]]
        last = code.end()
    return "".join([*parts, _relinked(markdown[last:], origin, here)])


def _relinked(text: str, origin: str, here: str) -> str:
    def link(match: re.Match[str]) -> str:
        picture, words, linked, heading = match.groups(default="")
        target = _on_site(posixpath.normpath(posixpath.join(origin, linked)))
        if target is None:
            return words  # a file of the repository, which the site can't lead to
        address = posixpath.relpath(target, posixpath.dirname(here) or ".") + heading
        if target == here:
            address = heading or posixpath.basename(linked)
        return f"{picture}[{words}]({address})"

    return _LINK.sub(link, text)


def _on_site(place: str) -> str | None:
    """Return the page of a file of the repository; None where the site has none."""
    if place.startswith("docs/"):
        return _on_page(place.removeprefix("docs/"))
    if place in ("docs", "README.md"):
        return "README.md"
    return f"{FOLDER}/{place}" if place in PROJECT else None


def _on_page(place: str) -> str:
    if posixpath.basename(place) == REPORT:
        return f"{posixpath.dirname(place)}/{FIGURES}"
    return place.removesuffix(".ipynb") + ".md" if place.endswith(".ipynb") else place
