"""The first page of the reference: what is public, and where it is described."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tools.reference.docstrings import read, table
from tools.reference.names import GENERATED, GROUPS, RECEIPTS, anchor

import grapheraser as ge
from grapheraser import receipts
from grapheraser.aggregation import AGGREGATORS
from grapheraser.datasets import PUBLIC
from grapheraser.engines import ENGINES
from grapheraser.execution import EXECUTORS
from grapheraser.models import KINDS
from grapheraser.partition import PARTITIONERS

_INTRODUCTION = f"""\
# Reference

{GENERATED}
Public is what `grapheraser.__all__` names, the modules `grapheraser.errors` and
`grapheraser.receipts`, and the command line. Everything else is internal and may change from one
release to the next.

Beside the names below: [the command line](reference/command-line.md), [environment
variables](reference/variables.md), [errors](reference/errors.md) and [file
formats](formats.md).
"""

_PARTS = """\
## Names of parts

Arguments of the constructors, and options of `fit`, take these names, or
[objects of your own](parts.md).
"""
# What a table of names can't say by itself.
_NOTES = {
    "model": "each also as in the paper's code (`gcn:paper`, ...); without shards `closed-form`, "
    "and of it the regression on features alone, `sgc`",
    "partition": "`kaminpar` needs the extra `fast-partition`; [how they differ](partitioning.md)",
    "aggregation": "routed shards by default in a pool with the closed-form members `words` "
    "`labels` `edges` `pattern` `features`; [how they differ](aggregation.md)",
    "engine": "`pyg` is the plain reference loop, `cpu` has fused kernels for the built-in models "
    "and is the default, `cuda` is the same on a GPU, with triton: verified bit for bit on one "
    "H200, and left out of `make test`; [engines](engines.md)",
    "executor": "threads, a pool of processes, a cluster with the extra `ray`; "
    "[clusters](clusters.md)",
    "data set": "public ones need a download or `GRAPHERASER_DATA`; `demo` and `demo-large` are "
    "generated; any compact npz, and [what `import` makes](import.md), is one too",
    "members of `LinkEraser`": "bipartite, weighted and directed graphs; [links](links.md)",
}


def page() -> str:
    """The whole page."""
    parts = table(("part", "names", "what to know"), _parts())
    return "\n".join([_INTRODUCTION, *_groups(), _PARTS, parts]).rstrip() + "\n"


def _groups() -> Iterator[str]:
    for name, (title, names) in GROUPS.items():
        yield f"## {title}\n"
        yield table(("name", "what it is"), (_row(name, n, getattr(ge, n)) for n in names))
    yield "## The module grapheraser.receipts\n"
    names = tuple(n for n in receipts.__all__ if n not in ge.__all__)
    rows = (_row(RECEIPTS, n, getattr(receipts, n), "receipts") for n in names)
    yield table(("name", "what it is"), rows)


def _parts() -> Iterator[tuple[str, str, str]]:
    named: dict[str, Iterable[str]] = {
        "model": KINDS,
        "partition": PARTITIONERS,
        "aggregation": AGGREGATORS,
        "engine": ENGINES,
        "executor": EXECUTORS,
        "data set": ("demo", "demo-large", *PUBLIC),
        "members of `LinkEraser`": ("closed-form", "shards", "both"),
    }
    for part, names in named.items():
        yield part, " ".join(f"`{name}`" for name in names), _NOTES[part]


def _row(page: str, name: str, value: object, module: str = "ge") -> tuple[str, str]:
    meaning = read(value).summary if callable(value) else f'the text "{value}"'
    return f"[`{module}.{name}`](reference/{page}.md#{anchor(name)})", meaning
