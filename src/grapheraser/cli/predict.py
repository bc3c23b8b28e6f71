"""grapheraser predict: predict the classes of nodes, or the links of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from grapheraser.cli.arguments import parse_edges, parse_ids, typed
from grapheraser.cli.output import JsonOption, print_json, print_table
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.errors import ParameterError

NAME = "predict"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    nodes: Annotated[str, typer.Option(help="Node ids, e.g. 1,2,3; - for stdin, @FILE.")] = "",
    pairs: Annotated[
        str, typer.Option(help="Of a link run: pairs, e.g. 3-17,4-8; - for stdin, @FILE.")
    ] = "",
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show what each member of the ensemble answers."),
    ] = False,
    decimals: Annotated[
        int | None, typer.Option(help="Round posteriors to this many decimals.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="Show this many of the largest probabilities.")
    ] = None,
    labels: Annotated[
        int | None,
        typer.Option(help="Show the ranking of this many classes, without probabilities."),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Temperature; above 1 it flattens posteriors.")
    ] = None,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Predict the classes of nodes, or the links of pairs.

    docs/audit.md explains the options that reveal less.
    """
    from grapheraser.audit.mitigations import Mitigation
    from grapheraser.eraser import GraphEraser

    if bool(nodes) == bool(pairs):
        raise ParameterError(
            "predict needs --nodes, or --pairs of a link run, and not both.",
            hint="e.g. --nodes 1,2,3 or --pairs 3-17,4-8.",
        )
    mitigation = Mitigation(temperature, labels, top, decimals)
    if pairs:
        if explain or mitigation != Mitigation():
            raise ParameterError("--pairs goes with --json alone of the other options.")
        _predict_links(path, pairs, trust, as_json=json)
        return
    text = typed(nodes)
    if explain and mitigation != Mitigation():
        raise ParameterError(
            "--explain shows what every member answers, which reveals more than the posteriors "
            f"that you ask for ({mitigation}).",
            hint="leave out --explain, or the options that reveal less.",
        )
    eraser = GraphEraser.load(path, **own_parts(path, trust))
    ids = parse_ids(text, "--nodes", named=eraser.graph_.named)
    posteriors = mitigation(eraser.predict_proba(ids))
    explanations = [eraser.explain(node) for node in ids] if explain else []
    classes, words = posteriors.argmax(axis=1), eraser.graph_.class_names
    if json:
        predictions: list[dict[str, Any]] = [
            {"node": node, "class": int(label), "posterior": [round(float(p), 6) for p in row]}
            | ({"class_name": words[label]} if words else {})
            for node, label, row in zip(ids, classes, posteriors, strict=True)
        ]
        for entry, explanation in zip(predictions, explanations, strict=False):
            entry["explanation"] = explanation.to_dict()
        print_json({"run": str(path), "predictions": predictions})
        return
    rows = [
        (node, words[label] if words else label, f"{row[label]:.3f}")
        for node, label, row in zip(ids, classes, posteriors, strict=True)
    ]
    print_table("", ("node", "class", "posterior"), rows)
    for explanation in explanations:
        members = [
            (say.member, f"{say.weight:.3f}", say.label, f"{say.confidence:.3f}")
            for say in explanation.members
        ]
        print_table(
            f"\nnode {explanation.node}: {explanation.why}",
            ("member", "weight", "class", "confidence"),
            members,
        )


def _predict_links(path: Path, text: str, trust: Sequence[str] | None, *, as_json: bool) -> None:
    from grapheraser.links import LinkEraser

    text, eraser = typed(text), LinkEraser.load(path, **own_parts(path, trust))
    pairs = parse_edges(text, "--pairs", named=eraser.graph_.named)
    found = eraser.predict_proba(pairs).tolist()
    if as_json:
        links = [
            {"pair": list(pair), "probability": round(p, 6)}
            for pair, p in zip(pairs, found, strict=True)
        ]
        print_json({"run": str(path), "predictions": links})
        return
    rows = [(u, v, f"{p:.4f}") for (u, v), p in zip(pairs, found, strict=True)]
    print_table("", ("node", "node", "probability"), rows)
