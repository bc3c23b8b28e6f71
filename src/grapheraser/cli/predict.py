"""grapheraser predict, rank, evaluate: ask a run, and score its answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import (
    parse_edges,
    parse_facts,
    parse_ids,
    read_lines,
    read_pairs,
    typed,
)
from grapheraser.cli.options import JsonOption, RunArgument, TrustOption
from grapheraser.cli.output import print_json, print_line, print_rows, print_table, say
from grapheraser.cli.own import load
from grapheraser.errors import GraphError, ParameterError, RunKindError
from grapheraser.reports.wording import duration, plural

if TYPE_CHECKING:
    from grapheraser.aggregation import Explanation
    from grapheraser.graphs import CollectionEraser
    from grapheraser.links import LinkEraser
    from grapheraser.nodes import GraphEraser
    from grapheraser.nodes.mitigations import Mitigation
    from grapheraser.recommendation import Recommender

NODES, LINKS, RECOMMENDATION, GRAPHS = "nodes", "links", "recommendation", "graphs"


def predict(
    path: RunArgument,
    nodes: Annotated[str, typer.Option(help="Node ids, e.g. 1,2,3; - for stdin, @FILE.")] = "",
    pairs: Annotated[
        str, typer.Option(help="Pairs of a link run, e.g. 3-17,4-8; - for stdin, @FILE.")
    ] = "",
    facts: Annotated[
        str,
        typer.Option(
            help="Facts of a link run on a typed graph, a line each: head,relation,tail; - for "
            "stdin, @FILE."
        ),
    ] = "",
    users: Annotated[
        str, typer.Option(help="Users of a recommender, e.g. 7,12; - for stdin, @FILE.")
    ] = "",
    graphs: Annotated[
        str, typer.Option(help="Graphs of a collection, e.g. 12,40; - for stdin, @FILE.")
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
        bool, typer.Option("--explain", help="Show what each member of the ensemble answers.")
    ] = False,
    decimals: Annotated[
        int | None, typer.Option(help="Round posteriors to this many decimals.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(help="Show this many of the largest probabilities; of a recommender, items."),
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
    """Predict classes of nodes or graphs, links of pairs, items of users; print embeddings.

    docs/audit.md explains the options that reveal less.
    """
    from grapheraser.cli.embeddings import EMBEDDINGS, show_rows
    from grapheraser.eraser.load import task_of
    from grapheraser.nodes.mitigations import Mitigation

    if bool(nodes) + bool(pairs) + bool(facts) + bool(users) + bool(graphs) + every != 1:
        raise ParameterError(
            "predict needs --nodes, --all, --pairs or --facts of a link run, --users of a "
            "recommender or --graphs of a collection, and one of them only.",
            hint="e.g. --nodes 1,2,3, or --all --out scores.parquet, or --pairs 3-17,4-8.",
        )
    mitigation = Mitigation(temperature, labels, None if users else top, decimals)
    said_less = mitigation != Mitigation()
    more = bool(explain or said_less or out or posteriors or executor != "local")
    if graphs:
        _check_alone("--graphs goes with --json", more=more)
        run = load(path, trust, task=GRAPHS)
        _predict_graphs(run, path, parse_ids(typed(graphs), "--graphs"), as_json=json)
        return
    if users:
        _check_alone("--users goes with --top and --json", more=more)
        eraser = load(path, trust, task=RECOMMENDATION)
        _recommend(eraser, path, typed(users), 20 if top is None else top, as_json=json)
        return
    _check_alone("--pairs goes with --json", more=bool(pairs) and more)
    _check_alone("--facts goes with --json", more=bool(facts) and more)
    _check_out(out, path, posteriors, said_less, every or executor != "local")
    if explain:
        _check_explain(str(mitigation) if said_less else "--out" if out else "")
    if pairs or facts:
        asked = parse_facts(typed(facts), "--facts") if facts else typed(pairs)
        _predict_links(load(path, trust, task=LINKS), path, asked, as_json=json)
        return
    if task_of(path) == EMBEDDINGS:
        if every or more:
            raise ParameterError(
                f"{path}: an embedding run takes --nodes and --json alone.",
                hint=f"grapheraser changes {path} --out rows.parquet writes all rows.",
            )
        show_rows(load(path, trust, task=EMBEDDINGS), path, nodes, as_json=json)
        return
    eraser = load(path, trust, executor, task=NODES)
    text = eraser.graph_.called_by_text
    ids = None if every else parse_ids(typed(nodes), "--nodes", named=text)
    if out is not None:
        options = {"posteriors": posteriors, "mitigation": mitigation}
        _predict_to(out, eraser, path, ids, options, as_json=json)
    elif ids is not None:
        _predict(eraser, path, ids, mitigation, explain=explain, as_json=json)


def _check_alone(options: str, *, more: bool) -> None:
    if more:
        raise ParameterError(f"{options} alone of the other options.")


def _check_explain(less: str) -> None:
    """Refuse options that ask for less than an explanation shows."""
    if less:
        raise ParameterError(
            "--explain shows what every member answers, which reveals more than the posteriors "
            f"that you ask for ({less}).",
            hint="leave out --explain, or the options that reveal less.",
        )


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
    eraser: GraphEraser,
    path: Path,
    ids: Sequence[int] | Sequence[str],
    mitigation: Mitigation,
    *,
    explain: bool,
    as_json: bool,
) -> None:
    if not eraser.graph_.label_kind.is_classes:
        plain = mitigation == type(mitigation)()
        _predict_targets(eraser, path, ids, plain=plain, explain=explain, as_json=as_json)
        return
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
    _print_members(explanations, words)


def _print_members(explanations: Sequence[Explanation], words: Sequence[Any]) -> None:
    for explanation in explanations:
        members = [
            (
                say.member,
                f"{say.weight:.3f}",
                *(
                    (words[say.label] if words else say.label,)
                    if explanation.target is None
                    else ()
                ),
                f"{say.confidence:.3f}",
            )
            for say in explanation.members
        ]
        plain = explanation.target is None
        of = "" if plain else f", {explanation.target}"
        titles = ("member", "weight", *(("class", "confidence") if plain else ("says",)))
        print_table(f"\nnode {explanation.node}{of}: {explanation.why}", titles, members)


def _predict_targets(
    eraser: GraphEraser,
    path: Path,
    ids: Sequence[Any],
    *,
    plain: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Print several labels with their probabilities, or numbers."""
    kind = eraser.graph_.label_kind
    if not plain:
        raise ParameterError(f"what says less of posteriors is for classes, not {kind.words}.")
    answers, names = eraser.answers(ids).tolist(), kind.target_names
    explained = [[eraser.explain(node, name) for name in names] for node in ids if explain]
    if as_json:
        what = "values" if kind.is_numbers else "probabilities"
        found = [
            {"node": node, what: dict(zip(names, row, strict=True))}
            for node, row in zip(ids, answers, strict=True)
        ]
        for entry, each in zip(found, explained, strict=False):
            entry["explanations"] = [one.to_dict() for one in each]
        print_json({"run": str(path), "predictions": found})
        return
    table = [
        (node, *(f"{value:.4g}" for value in row)) for node, row in zip(ids, answers, strict=True)
    ]
    print_table("", ("node", *names), table)
    for each in explained:
        _print_members(each, ())


def _predict_to(
    out: Path,
    eraser: GraphEraser,
    path: Path,
    nodes: Sequence[int] | Sequence[str] | None,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Write the classes of these nodes, or of all, to a file."""
    try:
        done = eraser.predict_to(out, nodes, **options)
    except KeyboardInterrupt:
        say(f"stopped. Finished blocks are in {out}.parts; run the same command to go on.")
        raise typer.Exit(130) from None
    if as_json:
        print_json({"run": str(path), **asdict(done), "path": str(out)})
        return
    kept = f", {done.kept} of them kept from before" if done.kept else ""
    scored = f"{plural(done.rows, 'node')} in {duration(done.seconds)}"
    print_rows({"scored": scored, "blocks": f"{done.blocks}{kept}", "file": out})


def _predict_links(eraser: LinkEraser, path: Path, asked: Any, *, as_json: bool) -> None:
    """Print the probability of pairs, as text, or of facts, as triples."""
    named = eraser.graph_.named
    pairs = isinstance(asked, str)
    ends: Any = parse_edges(asked, "--pairs", named=named) if pairs else asked
    found = eraser.predict_proba(ends).tolist()
    if as_json:
        links = [
            {"pair" if pairs else "fact": list(one), "probability": round(p, 6)}
            for one, p in zip(ends, found, strict=True)
        ]
        print_json({"run": str(path), "predictions": links})
        return
    rows = [(*one, f"{p:.4f}") for one, p in zip(ends, found, strict=True)]
    titles = ("node", "node") if pairs else ("head", "relation", "tail")
    print_table("", (*titles, "probability"), rows)


def _predict_graphs(
    eraser: CollectionEraser, path: Path, ids: Sequence[Any], *, as_json: bool
) -> None:
    answers, kind = eraser.answers(ids).tolist(), eraser.graph_.label_kind
    names = [*map(str, kind.names or range(kind.count))] if kind.is_classes else kind.target_names
    said = eraser.predict(ids).tolist()
    if as_json:
        found = [
            {"graph": graph, "predicted": one, "values": dict(zip(names, row, strict=True))}
            for graph, one, row in zip(ids, said, answers, strict=True)
        ]
        print_json({"run": str(path), "predictions": found})
        return
    rows = [
        (graph, str(one), *(f"{value:.4g}" for value in row))
        for graph, one, row in zip(ids, said, answers, strict=True)
    ]
    print_table("", ("graph", "predicted", *names), rows)


def _recommend(eraser: Recommender, path: Path, text: str, top: int, *, as_json: bool) -> None:
    users = parse_ids(text, "--users", named=eraser.graph_.named)
    items, scores = eraser.recommend(users, top, return_scores=True)
    found = [
        [(item, score) for item, score in zip(own, its, strict=True) if item not in (-1, None)]
        for own, its in zip(items.tolist(), scores.tolist(), strict=True)
    ]
    if as_json:
        answers = [
            {"user": user, "items": [i for i, _ in own], "scores": [s for _, s in own]}
            for user, own in zip(users, found, strict=True)
        ]
        print_json({"run": str(path), "recommendations": answers})
        return
    rows = [
        (user if rank == 0 else "", item, f"{score:.4g}")
        for user, own in zip(users, found, strict=True)
        for rank, (item, score) in enumerate(own)
    ]
    print_table("", ("user", "item", "score"), rows)


def rank(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a link run.")],
    node: Annotated[str, typer.Option(help="Id or name of the node.")],
    top: Annotated[int, typer.Option(help="How many links to show.")] = 10,
    relation: Annotated[
        str, typer.Option(help="On a typed graph: the relation, of which the node is the head.")
    ] = "",
    inverse: Annotated[
        bool, typer.Option("--inverse", help="The node is the tail of the relation.")
    ] = False,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Print the most likely new links of a node, best first; on a typed graph, tails or heads."""
    from grapheraser.eraser.load import task_of

    if task_of(path) == NODES:
        hint = "ask it with predict RUN --nodes ID, or fit a run that ranks with --task links."
        raise RunKindError(f"{path}: a run that predicts the classes of nodes.", hint=hint)
    eraser = load(path, trust, task=LINKS)
    asked = parse_ids(node, "--node", named=eraser.graph_.called_by_text)
    if len(asked) != 1:
        raise ParameterError.of("--node", "the command", "one node", node)
    ranked = eraser.rank(asked[0], top, relation=relation or None, inverse=inverse)
    if json:
        print_json({"run": str(path), **ranked.to_dict()})
        return
    if len(ranked.nodes) == 0:
        say(f"node {node} has no candidates: it is linked to all that may be linked to it")
    rows = zip(ranked.nodes.tolist(), (f"{p:.4f}" for p in ranked.probabilities), strict=True)
    print_table("", ("node", "probability"), list(rows))


def evaluate(
    path: RunArgument,
    pairs: Annotated[
        str,
        typer.Option(
            help="File of pairs of a link run (- for stdin), one per line: 3,17,1 "
            "(1: a link, 0: none)."
        ),
    ] = "",
    facts: Annotated[
        str,
        typer.Option(
            help="File of true facts that a link run on a typed graph does not know (- for stdin), "
            "one per line: head,relation,tail."
        ),
    ] = "",
    interactions: Annotated[
        str,
        typer.Option(
            help="Interactions for a recommender to find: CSV or Parquet, columns user and item."
        ),
    ] = "",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Print the micro F1 on the remaining test nodes; of other runs, scores on what is given."""
    from grapheraser.eraser.load import task_of

    if bool(pairs) + bool(facts) + bool(interactions) > 1:
        raise ParameterError("--pairs, --facts and --interactions exclude each other.")
    if interactions:
        eraser = load(path, trust, task=RECOMMENDATION)
        _evaluate_recommender(eraser, path, Path(interactions), as_json=json)
        return
    if pairs or facts:
        run = load(path, trust, task=LINKS)
        (_evaluate_links if pairs else _evaluate_facts)(run, path, pairs or facts, as_json=json)
        return
    if task_of(path) == RECOMMENDATION:
        raise ParameterError(
            f"{path}: a recommender has no test interactions of its own.",
            hint="bring some: --interactions FILE, a table with columns user and item.",
        )
    if task_of(path) == "embeddings":
        raise ParameterError(
            f"{path}: an embedding run has no labels to be scored by.",
            hint="Embedder.on(graph) is a step of a scikit-learn pipeline, which can be scored.",
        )
    if task_of(path) not in (NODES, GRAPHS):
        raise ParameterError(
            f"{path}: a link run has no test edges of its own.",
            hint="bring pairs: --pairs FILE, one per line: 3,17,1 (1: a link, 0: none); on a typed "
            "graph --facts FILE: head,relation,tail.",
        )
    eraser = load(path, trust, task=task_of(path))
    nodes = eraser.graph_.labelled_test_nodes
    if len(nodes) == 0:
        raise GraphError(f"{path}: the run's graph has no test nodes with a label.")
    started = time.perf_counter()
    scores = eraser.evaluate(nodes)
    seconds = time.perf_counter() - started
    if json:
        print_json(
            {
                "run": str(path),
                **{f"test_{name}": value for name, value in scores.items()},
                "test_nodes": len(nodes),
                "train_nodes": eraser.graph_.num_train,
                "context_nodes": eraser.graph_.num_sharded - eraser.graph_.num_train,
                "shards": len(eraser.shards_),
                "changes": len(eraser.receipts_),
                "seconds": seconds,
            }
        )
        return
    said = ", ".join(
        f"{name.upper().replace('_', ' ')} {value:.4g}"
        for name, value in scores.items()
        if name != "f1"
    )
    if "f1" in scores:
        said = f"F1   {scores['f1']:.4f}" + (f", {said}" if said else "")
    noun = "graph" if eraser.task.name == "graphs" else "node"
    print_line(f"test {said} on {plural(len(nodes), noun)}, in {duration(seconds)}")


def _evaluate_links(eraser: LinkEraser, path: Path, file: str, *, as_json: bool) -> None:
    pairs, labels = read_pairs(file, named=eraser.graph_.named)
    score = eraser.score(pairs, labels)
    if as_json:
        print_json({"run": str(path), **score.to_dict()})
        return
    hits = ", ".join(f"Hits@{k} {share:.4f}" for k, share in score.hits.items())
    auc = f"{score.auc:.4f} on {score.edges:,} links and {score.others:,} other pairs"
    print_rows({"AUC": auc, "hits": hits, "MRR": f"{score.mrr:.4f}"})


def _evaluate_facts(eraser: LinkEraser, path: Path, file: str, *, as_json: bool) -> None:
    lines = "\n".join(line for _, line in read_lines(file, "facts"))
    score = eraser.score(parse_facts(lines, "--facts"))
    if as_json:
        print_json({"run": str(path), **score.to_dict()})
        return
    hits = ", ".join(f"hits@{k} {share:.4f}" for k, share in score.hits.items())
    print_rows({"MRR": f"{score.mrr:.4f} on {plural(score.facts, 'fact')}", "hits": hits})


def _evaluate_recommender(eraser: Recommender, path: Path, file: Path, *, as_json: bool) -> None:
    score = eraser.score(file)
    if as_json:
        print_json({"run": str(path), **score.to_dict()})
        return
    print_rows(
        {
            f"recall@{score.k}": f"{score.recall:.4f} over {plural(score.users, 'user')}",
            f"NDCG@{score.k}": f"{score.ndcg:.4f}",
            "hit rate": f"{score.hit_rate:.4f}",
            "MRR": f"{score.mrr:.4f}",
            "coverage": f"{score.coverage:.4f}",
        }
    )
