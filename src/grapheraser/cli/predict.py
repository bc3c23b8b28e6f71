"""grapheraser predict: predict the classes of nodes, or the links of pairs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import parse_edges, parse_ids, typed
from grapheraser.cli.output import JsonOption, print_json, print_table, say
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.errors import ParameterError

if TYPE_CHECKING:
    from grapheraser.audit.mitigations import Mitigation

NAME = "predict"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    nodes: Annotated[str, typer.Option(help="Node ids, e.g. 1,2,3; - for stdin, @FILE.")] = "",
    pairs: Annotated[
        str, typer.Option(help="Of a link run: pairs, e.g. 3-17,4-8; - for stdin, @FILE.")
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="All nodes; needs --out.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write to this .parquet, .csv or .npz file; goes on where it was interrupted."
        ),
    ] = None,
    posteriors: Annotated[
        bool, typer.Option("--posteriors", help="With --out: write posteriors as well.")
    ] = False,
    executor: Annotated[
        str, typer.Option(help="With --out: where nodes are judged: local, process or ray.")
    ] = "local",
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

    if bool(nodes) + bool(pairs) + every != 1:
        raise ParameterError(
            "predict needs --nodes, --all, or --pairs of a link run, and one of them only.",
            hint="e.g. --nodes 1,2,3, or --all --out scores.parquet, or --pairs 3-17,4-8.",
        )
    mitigation = Mitigation(temperature, labels, top, decimals)
    said_less = mitigation != Mitigation()
    if pairs and (explain or said_less or out or posteriors or executor != "local"):
        raise ParameterError("--pairs goes with --json alone of the other options.")
    _check_out(out, path, posteriors, said_less, every or executor != "local")
    if explain and (out or said_less):
        less = str(mitigation) if said_less else "--out"
        raise ParameterError(
            "--explain shows what every member answers, which reveals more than the posteriors "
            f"that you ask for ({less}).",
            hint="leave out --explain, or the options that reveal less.",
        )
    own = own_parts(path, trust)
    if pairs:
        _predict_links(path, typed(pairs), own, as_json=json)
    elif out is None:
        _predict(path, typed(nodes), own, mitigation, explain=explain, as_json=json)
    else:
        asked = None if every else typed(nodes)
        options = {"posteriors": posteriors, "mitigation": mitigation}
        _predict_to(out, path, asked, own | {"executor": executor}, options, as_json=json)


def _check_out(
    out: Path | None, path: Path, posteriors: bool, said_less: bool, needed: bool
) -> None:
    if out is None:
        if posteriors or needed:
            raise ParameterError(
                "--all, --posteriors and --executor need --out.", hint="add --out scores.parquet."
            )
        return
    if said_less and not posteriors:
        raise ParameterError("what reveals less of posteriors needs --posteriors beside --out.")
    if out.resolve().is_relative_to(path.resolve()):
        raise ParameterError(
            f"{out} is inside the run, where scores would be a stray file.",
            hint="choose another --out.",
        )


def _predict(
    path: Path,
    text: str,
    own: dict[str, Any],
    mitigation: Mitigation,
    *,
    explain: bool,
    as_json: bool,
) -> None:
    from grapheraser.eraser import GraphEraser

    eraser = GraphEraser.load(path, **own)
    ids = parse_ids(text, "--nodes", named=eraser.graph_.named)
    posteriors = mitigation(eraser.predict_proba(ids))
    explanations = [eraser.explain(node) for node in ids] if explain else []
    classes, words = posteriors.argmax(axis=1), eraser.graph_.class_names
    if as_json:
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


def _predict_to(
    out: Path,
    path: Path,
    text: str | None,
    own: dict[str, Any],
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Write the classes of the nodes that were typed, or of all, to a file."""
    from grapheraser.eraser import GraphEraser
    from grapheraser.reports.wording import duration, plural

    eraser = GraphEraser.load(path, **own)
    named = eraser.graph_.named
    nodes = None if text is None else parse_ids(text, "--nodes", named=named)
    try:
        done = eraser.predict_to(out, nodes, **options)
    except KeyboardInterrupt:
        say(f"stopped. Finished blocks are in {out}.parts; run the same command to go on.")
        raise typer.Exit(130) from None
    if as_json:
        print_json({"run": str(path), **asdict(done), "path": str(out)})
        return
    kept = f", {done.kept} of them kept from before" if done.kept else ""
    print(f"scored    {plural(done.rows, 'node')} in {duration(done.seconds)}")
    print(f"blocks    {done.blocks}{kept}")
    print(f"file      {out}")


def _predict_links(path: Path, text: str, own: dict[str, Any], *, as_json: bool) -> None:
    from grapheraser.links import LinkEraser

    eraser = LinkEraser.load(path, **own)
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
