"""grapheraser import: make a compact npz file or a graph store of tables and other formats."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.errors import ParameterError
from grapheraser.progress import counted

if TYPE_CHECKING:
    from grapheraser.graph import Graph

NAME = "import"


def run(
    source: Annotated[
        str,
        typer.Argument(
            help="Table of nodes, npz, GraphML, GML or .pt file; folder of either; or "
            "generated:nodes=100000,degree=20,seed=0."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="File to write, .npz; or a folder.")],
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
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite what is there.")] = False,
    json: JsonOption = False,
) -> None:
    """Make a compact npz file, or a graph store, that `fit` takes like the name of a data set.

    A graph store is a folder. It is built block by block and read where it lies on the disk, so
    the graph may be larger than memory. An import that was interrupted goes on when it is repeated.
    """
    if out.suffix == ".npz" and out.exists() and not replace:
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
        graph = _imported(
            source, out, format=format or None, edges=edges, replace=replace, **options
        )
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
    print(f"{'file  ' if out.suffix == '.npz' else 'folder'}    {out}")


def _imported(source: str, out: Path, *, replace: bool, **options: Any) -> Graph:
    from grapheraser.graph import Graph
    from grapheraser.store.sources import GENERATED, generated, import_source

    if out.suffix != ".npz":
        with counted("importing") as begin:
            import_source(source, out, replace=replace, say=begin, **options)
        return Graph.open(out)
    if source.startswith(GENERATED):
        from grapheraser.datasets import generate_graph

        graph = generate_graph(**asdict(generated(source.removeprefix(GENERATED))))
    else:
        graph = Graph.from_file(source, **options)
    graph.to_npz(out)
    return graph
