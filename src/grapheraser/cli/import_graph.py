"""grapheraser import: make a compact npz file of tables and other formats."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.errors import ParameterError

NAME = "import"


def run(
    source: Annotated[
        Path,
        typer.Argument(help="Table of nodes, npz, GraphML, GML or .pt file; folder of either."),
    ],
    out: Annotated[Path, typer.Option("--out", help="File to write, .npz.")],
    format: Annotated[
        str,
        typer.Option(help="npz, tables, ogb, networkx, scipy or pyg; default: what it looks like."),
    ] = "",
    edges: Annotated[
        Path | None, typer.Option(help="Table of edges, where SOURCE is one of nodes.")
    ] = None,
    id: Annotated[str, typer.Option(help="Column of ids; default id.")] = "",
    label: Annotated[str, typer.Option(help="Column of classes; default label.")] = "",
    split: Annotated[
        str, typer.Option(help="Column of train, validation, test; of OGB, the split's folder.")
    ] = "",
    features: Annotated[str, typer.Option(help="Columns of features; default all others.")] = "",
    from_column: Annotated[
        str, typer.Option("--source", help="Column of first ends; default source.")
    ] = "",
    target: Annotated[str, typer.Option(help="Column of second ends; default target.")] = "",
    weight: Annotated[str, typer.Option(help="Column of weights; default weight.")] = "",
    edge_features: Annotated[
        str, typer.Option(help="Columns of the edges' own features; default none.")
    ] = "",
    names: Annotated[
        bool | None,
        typer.Option(help="Whether ids are names; default: unless all are whole numbers."),
    ] = None,
    directed: Annotated[
        bool | None, typer.Option(help="Keep the directions of edges; default: of networks alone.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite the file.")] = False,
    json: JsonOption = False,
) -> None:
    """Make a compact npz file that `fit` takes like the name of a data set."""
    from grapheraser.graph import Graph

    if out.suffix != ".npz":
        raise ParameterError.of("--out", "the command", "a file that ends in .npz", str(out))
    if out.exists() and not replace:
        raise ParameterError(f"{out}: the file exists.", hint="add --replace, or name another one.")
    columns = {"id": id, "label": label, "split": split, "source": from_column, "target": target}
    columns |= {"weight": weight}
    lists = {"features": features, "edge_features": edge_features}
    options: dict[str, Any] = {name: text for name, text in columns.items() if text}
    options |= {name: text.split(",") for name, text in lists.items() if text}
    options |= {} if names is None else {"names": names}
    options |= {} if directed is None else {"directed": directed}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        graph = Graph.from_file(source, format=format or None, edges=edges, **options)
    graph.to_npz(out)
    notes = list(dict.fromkeys([*graph.notes, *(str(warning.message) for warning in caught)]))
    if json:
        print_json(
            {
                "file": str(out),
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "features": graph.num_features,
                "classes": graph.num_classes,
                "class_names": list(graph.class_names),
                "named": graph.named,
                "directed": graph.directed,
                "weighted": graph.edge_kind.weighted,
                "edge_features": graph.edge_kind.columns,
                "train": graph.num_train,
                "validation": len(graph.validation_nodes),
                "test": len(graph.test_nodes),
                "graph": graph.fingerprint,
                "notes": notes,
            }
        )
        return
    for note in notes:
        say(f"note: {note}")
    print(f"{graph}")
    if graph.class_names:
        print(f"classes   {', '.join(graph.class_names)}")
    print(f"file      {out}")
