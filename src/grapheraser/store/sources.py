"""Sources of `grapheraser import`: read as a stream where possible, else into memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from grapheraser.datasets import GeneratedGraph
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.formats.known import format_of, tables_in
from grapheraser.graph.formats.streams import OgbStream, Stream, TableStream, UnstreamableError
from grapheraser.receipts import secret
from grapheraser.store.graphs import clear, write_graph
from grapheraser.store.importing import import_graph

GENERATED = "generated:"
_COLUMNS = ("id", "label", "split", "source", "target")
# Arguments of `generate_graph` under shorter names.
_SHORT = {"nodes": "num_nodes", "features": "num_features", "classes": "num_classes"}


def import_source(
    source: str,
    folder: Path,
    *,
    format: str | None = None,
    edges: Path | None = None,
    replace: bool = False,
    keyed: bool = False,
    say: Callable[[str], None] = lambda text: None,
    **options: Any,
) -> None:
    """Make a graph store of a file, a folder or ``generated:nodes=...``; see `Graph.from_file`.

    Tables with whole numbers for ids and classes, folders of OGB and generated graphs are read
    block by block; all else is read into memory first. ``keyed`` gives nodes keyed ids; see
    `Graph.with_keyed_ids`.
    """
    stream = stream_of(source, format, edges, options)
    if stream is not None:
        try:
            hidden = secret.secret_of(secret.IDS) if keyed else None
            import_graph(stream, folder, replace=replace, secret=hidden, say=say)
            return
        except UnstreamableError as reason:
            say(f"reading all into memory: {reason}")
            clear(folder)
    graph = Graph.from_file(source, format=format, edges=edges, **options)
    write_graph(graph.with_keyed_ids() if keyed else graph, folder, replace=replace)


def stream_of(
    source: str, format: str | None, edges: Path | None, options: Mapping[str, Any]
) -> Stream | None:
    """A source as a stream; None where its format or an option needs all of it at once."""
    if source.startswith(GENERATED):
        if format or edges or options:
            raise ParameterError("a generated graph takes no other options than its own.")
        return generated(source.removeprefix(GENERATED))
    path = Path(source)
    kind = format_of(path) if format is None else format
    name = path.name.split(".")[0]
    classes = options.get("num_classes")
    if kind == "ogb" and not options.keys() - {"split", "num_classes"}:
        return OgbStream(path, name, options.get("split"), classes)
    if kind != "tables" or options.keys() - {*_COLUMNS, "features", "num_classes"}:
        return None
    nodes, pairs = tables_in(path, edges)
    columns = {key: options[key] for key in _COLUMNS if key in options}
    features = options.get("features")
    return None if nodes is None else TableStream(nodes, pairs, name, columns, features, classes)


def generated(text: str) -> GeneratedGraph:
    """The graph that ``nodes=1000000,degree=20,seed=3`` stands for."""
    kinds = {field.name: str(field.type) for field in fields(GeneratedGraph)}
    given: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        name = _SHORT.get(key, key)
        if name not in kinds:
            known = ", ".join(sorted({*kinds} - {*_SHORT.values()} | {*_SHORT}))
            raise ParameterError(f"a generated graph has no '{key}'. Choose from: {known}.")
        try:
            text_only, real = name == "name", kinds[name] == "float"
            given[name] = value if text_only else float(value) if real else int(float(value))
        except ValueError:
            raise ParameterError.of(key, "a generated graph", "a number", value) from None
    if "num_nodes" not in given:
        raise ParameterError("a generated graph needs a number of nodes: generated:nodes=100000.")
    return GeneratedGraph(**given)
