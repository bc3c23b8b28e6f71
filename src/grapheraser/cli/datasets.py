"""grapheraser datasets, import: list data sets, and make one of tables and other formats."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.output import answered, print_line, print_table, say, say_notes
from grapheraser.errors import ParameterError
from grapheraser.progress import counted

if TYPE_CHECKING:
    from grapheraser.graph import Graph


def datasets() -> None:
    """List the known data sets and their files."""
    from grapheraser.datasets import data_root, dataset_info

    infos = dataset_info()
    if answered({"root": str(data_root()), "datasets": [info.to_dict() for info in infos]}):
        return
    rows = [(i.name, i.source, "yes" if i.available else "no", i.path or "-") for i in infos]
    print_table("", ("name", "source", "on disk", "file"), rows)
    say(f"\ndata folder: {data_root()} (set GRAPHERASER_DATA to use another)")


def import_graph(
    source: Annotated[str, typer.Argument()],
    out: Path,
    format: str = "",
    edges: Path | None = None,
    id: str = "",
    label: str = "",
    classes: str = "",
    split: str = "",
    features: str = "",
    from_column: Annotated[str, typer.Option("--source")] = "",
    target: str = "",
    weight: str = "",
    edge_features: str = "",
    names: bool | None = None,
    missing: str = "",
    categories: str = "",
    labels: str = "",
    separator: str = "",
    label_range: float | None = None,
    directed: bool | None = None,
    keyed: bool = False,
    replace: bool = False,
) -> None:
    """Make a compact npz file, or a graph store, that `fit` takes like the name of a data set.

    A graph store is a folder. It is built block by block and read where it lies on the disk, so
    the graph may be larger than memory. An import that was interrupted goes on when it is repeated.

    Options:
        source: Table of nodes or facts, npz, GraphML, GML or .pt file; folder of tables, typed ones
            too, or of OGB; or generated:nodes=100000,degree=20,seed=0.
        out: File to write, .npz; or a folder.
        format: Format: npz, tables, typed, facts, ogb, networkx, scipy or pyg; default: as it
            looks.
        edges: Table of edges, where SOURCE is one of nodes.
        id: Column of ids; default id.
        label: Column of classes; default label.
        classes: How many classes there are, or their names, or those of several labels; default:
            found in the data, and receipts say 'exact given schema'.
        split: Column of train, validation, test; of OGB, the split's folder.
        features: Columns of features; default all others.
        from_column: Column of first ends; default source.
        target: Column of second ends; default target. Of a typed graph: its target type.
        weight: Column of weights; default weight.
        edge_features: Columns of the edges' own features; default none.
        names: Whether ids are names; default: unless all are whole numbers.
        missing: For gaps: mean, zero or indicator; or by column, age=mean,b=zero.
        categories: Categories of columns, size=s|m|l,town=a|b; default: found in the data.
        labels: Kind of labels of a table: classes, several (words in a cell), or numbers.
        separator: Between the words in a cell; default ;.
        label_range: The largest magnitude of numbers; default: found in the data.
        directed: Keep the directions of edges; default: of networks alone.
        keyed: Keep keyed hashes for ids: gaps then name nobody.
        replace: Overwrite what is there.
    """
    from grapheraser.graph.labels import SEVERAL

    if out.suffix == ".npz" and out.exists() and not replace:
        raise ParameterError(f"{out}: the file exists.", hint="add --replace, or name another one.")
    columns = {"id": id, "label": label, "split": split, "source": from_column, "target": target}
    columns |= {"weight": weight}
    lists = {"features": features, "edge_features": edge_features}
    options: dict[str, Any] = {name: text for name, text in columns.items() if text}
    options |= {name: text.split(",") for name, text in lists.items() if text}
    options |= {"target_names": classes.split(",")} if labels == SEVERAL and classes else {}
    options |= {} if labels == SEVERAL else _classes(classes)
    options |= {"labels": labels} if labels else {}
    options |= {"separator": separator} if separator else {}
    options |= {} if label_range is None else {"label_range": label_range}
    if missing:
        options["missing"] = _by_column(missing, "--missing") if "=" in missing else missing
    if categories:
        found = _by_column(categories, "--categories")
        options["categories"] = {name: words.split("|") for name, words in found.items()}
    options |= {} if names is None else {"names": names}
    options |= {} if directed is None else {"directed": directed}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        graph = _imported(
            source, out, keyed, format=format or None, edges=edges, replace=replace, **options
        )
    notes = list(dict.fromkeys([*graph.notes, *(str(warning.message) for warning in caught)]))
    described = {
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
    if answered(described):
        return
    say_notes(notes)
    print_line(f"{graph}")
    if graph.class_names:
        print_line(f"classes   {', '.join(map(str, graph.class_names))}")
    print_line(f"{'file  ' if out.suffix == '.npz' else 'folder'}    {out}")


def _classes(text: str) -> dict[str, Any]:
    """Return the classes that were declared: their number, or their names."""
    if not text:
        return {}
    if text.isdigit():
        return {"num_classes": int(text)}
    names = text.split(",")
    return {"class_names": [*map(int, names)] if all(map(str.isdigit, names)) else names}


def _by_column(text: str, option: str) -> dict[str, str]:
    """Read ``column=value,column=value``."""
    found = {part.partition("=")[0]: part.partition("=")[2] for part in text.split(",")}
    if not all(found.values()):
        raise ParameterError.of(option, "the command", "column=value,column=value", text)
    return found


def _imported(source: str, out: Path, keyed: bool, *, replace: bool, **options: Any) -> Graph:
    from grapheraser.graph import Graph
    from grapheraser.store.sources import GENERATED, generated, import_source

    if out.suffix != ".npz":
        with counted("importing") as begin:
            import_source(source, out, replace=replace, keyed=keyed, say=begin, **options)
        return Graph.open(out)
    if source.startswith(GENERATED):
        from grapheraser.datasets import generate_graph

        graph = generate_graph(**asdict(generated(source.removeprefix(GENERATED))))
    else:
        graph = Graph.from_file(source, **options)
    graph = graph.with_keyed_ids() if keyed else graph
    graph.to_npz(out)
    return graph
