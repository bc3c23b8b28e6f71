"""grapheraser predict, rank, evaluate: ask a run, and score its answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
from grapheraser.cli.options import RunArgument, TrustOption
from grapheraser.cli.output import answered, print_found, print_line, print_table, say
from grapheraser.cli.own import load
from grapheraser.errors import GraphError, ParameterError, RunKindError
from grapheraser.reports.wording import duration, plural

if TYPE_CHECKING:
    from grapheraser.aggregation import Explanation
    from grapheraser.graphs import CollectionEraser, GraphExplanation
    from grapheraser.links import LinkEraser
    from grapheraser.nodes import GraphEraser
    from grapheraser.nodes.mitigations import Mitigation
    from grapheraser.recommendation import Recommender

_DECIDING = 8  # nodes of a graph that is explained
NODES, LINKS, RECOMMENDATION, GRAPHS = "nodes", "links", "recommendation", "graphs"


def predict(
    path: RunArgument,
    nodes: str = "",
    pairs: str = "",
    facts: str = "",
    users: str = "",
    graphs: str = "",
    every: Annotated[bool, typer.Option("--all")] = False,
    out: Path | None = None,
    posteriors: bool = False,
    executor: str = "local",
    explain: bool = False,
    decimals: int | None = None,
    top: int | None = None,
    labels: int | None = None,
    temperature: float | None = None,
    trust: TrustOption = None,
) -> None:
    """Predict classes of nodes or graphs, links of pairs, items of users; print embeddings.

    docs/audit.md explains the options that reveal less.

    Options:
        nodes: Node ids, e.g. 1,2,3; - for stdin, @FILE.
        pairs: Pairs of a link run, e.g. 3-17,4-8; - for stdin, @FILE.
        facts: Facts of a link run on a typed graph, a line each: head,relation,tail; - for stdin,
            @FILE.
        users: Users of a recommender, e.g. 7,12; - for stdin, @FILE.
        graphs: Graphs of a collection, e.g. 12,40; - for stdin, @FILE.
        every: All nodes; needs --out.
        out: Write to this .parquet, .csv or .npz file; goes on where it was interrupted.
        posteriors: With --out: write posteriors as well.
        executor: With --out: where nodes are judged: local, process or ray.
        explain: Show what each member of the ensemble answers; of a graph also the graphs most like
            it, and which of its nodes decide.
        decimals: Round posteriors to this many decimals.
        top: Show this many of the largest probabilities; of a recommender, items.
        labels: Show the ranking of this many classes, without probabilities.
        temperature: Temperature; above 1 it flattens posteriors.
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
        beside = said_less or out or posteriors or executor != "local"
        _check_alone("--graphs goes with --explain and --json", more=bool(beside))
        run = load(path, trust, task=GRAPHS)
        names = parse_ids(typed(graphs), "--graphs", named=run.graph_.called_by_text)
        _predict_graphs(run, path, names, explain=explain)
        return
    if users:
        _check_alone("--users goes with --top and --json", more=more)
        eraser = load(path, trust, task=RECOMMENDATION)
        _recommend(eraser, path, typed(users), 20 if top is None else top)
        return
    _check_alone("--pairs goes with --json", more=bool(pairs) and more)
    _check_alone("--facts goes with --json", more=bool(facts) and more)
    _check_out(out, path, posteriors, said_less, every or executor != "local")
    if explain:
        _check_explain(str(mitigation) if said_less else "--out" if out else "")
    if pairs or facts:
        asked = parse_facts(typed(facts), "--facts") if facts else typed(pairs)
        _predict_links(load(path, trust, task=LINKS), path, asked)
        return
    if task_of(path) == EMBEDDINGS:
        if every or more:
            raise ParameterError(
                f"{path}: an embedding run takes --nodes and --json alone.",
                hint=f"grapheraser changes {path} --out rows.parquet writes all rows.",
            )
        show_rows(load(path, trust, task=EMBEDDINGS), path, nodes)
        return
    eraser = load(path, trust, executor, task=NODES)
    text = eraser.graph_.called_by_text
    ids = None if every else parse_ids(typed(nodes), "--nodes", named=text)
    if out is not None:
        _predict_to(out, eraser, path, ids, posteriors=posteriors, mitigation=mitigation)
    elif ids is not None:
        _predict(eraser, path, ids, mitigation, explain=explain)


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
    eraser: GraphEraser, path: Path, ids: Sequence[Any], mitigation: Mitigation, *, explain: bool
) -> None:
    if not eraser.graph_.label_kind.is_classes:
        plain = mitigation == type(mitigation)()
        _predict_targets(eraser, path, ids, plain=plain, explain=explain)
        return
    posteriors = mitigation(eraser.predict_proba(ids))
    explanations = [eraser.explain(node) for node in ids] if explain else []
    words, found, rows = eraser.graph_.class_names, [], []
    for node, row in zip(ids, posteriors, strict=True):
        label = int(row.argmax())
        entry = {"node": node, "class": label, "posterior": [round(float(p), 6) for p in row]}
        found.append(entry | ({"class_name": words[label]} if words else {}))
        rows.append((node, words[label] if words else label, f"{row[label]:.3f}"))
    for entry, explanation in zip(found, explanations, strict=False):
        entry["explanation"] = explanation.to_dict()
    if not _told(path, found, ("node", "class", "posterior"), rows):
        _print_explained(explanations, words)


def _told(
    path: Path,
    found: Sequence[Any],
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    name: str = "predictions",
) -> bool:
    """Print what was found, as JSON or as a table; return whether it was JSON."""
    if answered({"run": str(path), name: found}):
        return True
    print_table("", header, rows)
    return False


def _print_members(
    said: Explanation | GraphExplanation, words: Sequence[Any], about: str, why: str = ""
) -> None:
    """Print who decided; of one of several labels or numbers each member says a number alone."""
    plain, rows = said.target is None, []
    for one in said.members:
        label = (words[one.label] if words else one.label,) if plain else ()
        rows.append((one.member, f"{one.weight:.3f}", *label, f"{one.confidence:.3f}"))
    of = "" if plain else f", {said.target}"
    header = ("member", "weight", *(("class", "confidence") if plain else ("says",)))
    print_table(f"\n{about}{of}{why}", header, rows)


def _print_explained(each: Sequence[Explanation], words: Sequence[Any]) -> None:
    for said in each:
        _print_members(said, words, f"node {said.node}", f": {said.why}")


def _predict_targets(
    eraser: GraphEraser, path: Path, ids: Sequence[Any], *, plain: bool, explain: bool
) -> None:
    """Print several labels with their probabilities, or numbers."""
    kind = eraser.graph_.label_kind
    if not plain:
        raise ParameterError(f"what says less of posteriors is for classes, not {kind.words}.")
    answers, names = eraser.answers(ids).tolist(), kind.target_names
    explained = [[eraser.explain(node, name) for name in names] for node in ids if explain]
    what = "values" if kind.is_numbers else "probabilities"
    found, rows = [], []
    for node, row in zip(ids, answers, strict=True):
        found.append({"node": node, what: dict(zip(names, row, strict=True))})
        rows.append((node, *(f"{value:.4g}" for value in row)))
    for entry, each in zip(found, explained, strict=False):
        entry["explanations"] = [one.to_dict() for one in each]
    if not _told(path, found, ("node", *names), rows):
        for each in explained:
            _print_explained(each, ())


def _predict_to(
    out: Path, eraser: GraphEraser, path: Path, nodes: Sequence[Any] | None, **options: Any
) -> None:
    """Write the classes of these nodes, or of all, to a file."""
    try:
        done = eraser.predict_to(out, nodes, **options)
    except KeyboardInterrupt:
        say(f"stopped. Finished blocks are in {out}.parts; run the same command to go on.")
        raise typer.Exit(130) from None
    kept = f", {done.kept} of them kept from before" if done.kept else ""
    scored = f"{plural(done.rows, 'node')} in {duration(done.seconds)}"
    rows = {"scored": scored, "blocks": f"{done.blocks}{kept}", "file": out}
    print_found({"run": str(path), **asdict(done), "path": str(out)}, rows)


def _predict_links(eraser: LinkEraser, path: Path, asked: Any) -> None:
    """Print the probability of pairs, as text, or of facts, as triples."""
    pairs = isinstance(asked, str)
    ends: Any = parse_edges(asked, "--pairs", named=eraser.graph_.named) if pairs else asked
    kind, titles = ("pair", ("node", "node")) if pairs else ("fact", ("head", "relation", "tail"))
    found, rows = [], []
    for one, p in zip(ends, eraser.predict_proba(ends).tolist(), strict=True):
        found.append({kind: list(one), "probability": round(p, 6)})
        rows.append((*one, f"{p:.4f}"))
    _told(path, found, (*titles, "probability"), rows)


def _predict_graphs(
    eraser: CollectionEraser, path: Path, ids: Sequence[Any], *, explain: bool
) -> None:
    answers, kind = eraser.answers(ids).tolist(), eraser.graph_.label_kind
    names = [*map(str, kind.names or range(kind.count))] if kind.is_classes else kind.target_names
    found, rows = [], []
    for graph, one, row in zip(ids, eraser.predict(ids).tolist(), answers, strict=True):
        values = dict(zip(names, row, strict=True))
        found.append({"graph": graph, "predicted": one, "values": values})
        rows.append((graph, str(one), *(f"{value:.4g}" for value in row)))
    targets = [0] if kind.is_classes else kind.target_names
    explained = [[eraser.explain(graph, target) for target in targets] for graph in ids if explain]
    for entry, each in zip(found, explained, strict=False):
        entry["explanations"] = [one.to_dict() for one in each]
    if not _told(path, found, ("graph", "predicted", *names), rows):
        for one in (one for each in explained for one in each):
            _print_graph(one, kind.names)


def _print_graph(said: GraphExplanation, words: Sequence[Any]) -> None:
    _print_members(said, words, f"graph {said.graph}")
    alike = [(one.graph, f"{one.label:g}", f"{one.similarity:.3f}") for one in said.alike]
    print_table("\nmost like it", ("graph", "label", "similarity"), alike)
    most = sorted(said.nodes.items(), key=lambda part: -abs(part[1]))[:_DECIDING]
    kinds = dict(zip(said.drawn.nodes.tolist(), said.drawn.labels.tolist(), strict=True))
    rows = [(node, kinds[node], f"{value:+.3f}") for node, value in most]
    print_table("\nnodes that decide", ("node", "label", "loss without"), rows)


def _recommend(eraser: Recommender, path: Path, text: str, top: int) -> None:
    users = parse_ids(text, "--users", named=eraser.graph_.named)
    items, scores = eraser.recommend(users, top, return_scores=True)
    found, rows = [], []
    for user, own, its in zip(users, items.tolist(), scores.tolist(), strict=True):
        best = [(i, s) for i, s in zip(own, its, strict=True) if i not in (-1, None)]
        found.append({"user": user, "items": [i for i, _ in best], "scores": [s for _, s in best]})
        rows += [(user if at == 0 else "", i, f"{s:.4g}") for at, (i, s) in enumerate(best)]
    _told(path, found, ("user", "item", "score"), rows, "recommendations")


def rank(
    path: Annotated[Path, typer.Argument(metavar="RUN")],
    node: str,
    top: int = 10,
    relation: str = "",
    inverse: bool = False,
    trust: TrustOption = None,
) -> None:
    """Print the most likely new links of a node, best first; on a typed graph, tails or heads.

    Options:
        path: Folder of a link run.
        node: Id or name of the node.
        top: How many links to show.
        relation: On a typed graph: the relation, of which the node is the head.
        inverse: The node is the tail of the relation.
    """
    from grapheraser.eraser.load import task_of

    if task_of(path) == NODES:
        hint = "ask it with predict RUN --nodes ID, or fit a run that ranks with --task links."
        raise RunKindError(f"{path}: a run that predicts the classes of nodes.", hint=hint)
    eraser = load(path, trust, task=LINKS)
    asked = parse_ids(node, "--node", named=eraser.graph_.called_by_text)
    if len(asked) != 1:
        raise ParameterError.of("--node", "the command", "one node", node)
    ranked = eraser.rank(asked[0], top, relation=relation or None, inverse=inverse)
    if answered({"run": str(path), **ranked.to_dict()}):
        return
    if len(ranked.nodes) == 0:
        say(f"node {node} has no candidates: it is linked to all that may be linked to it")
    rows = zip(ranked.nodes.tolist(), (f"{p:.4f}" for p in ranked.probabilities), strict=True)
    print_table("", ("node", "probability"), list(rows))


def evaluate(
    path: RunArgument,
    pairs: str = "",
    facts: str = "",
    interactions: str = "",
    trust: TrustOption = None,
) -> None:
    """Print the micro F1 on the remaining test nodes; of other runs, scores on what is given.

    Options:
        pairs: File of pairs of a link run (- for stdin), one per line: 3,17,1 (1: a link, 0: none).
        facts: File of true facts that a link run on a typed graph does not know (- for stdin), one
            per line: head,relation,tail.
        interactions: Interactions for a recommender to find: CSV or Parquet, columns user and item.
    """
    from grapheraser.eraser.load import task_of

    if bool(pairs) + bool(facts) + bool(interactions) > 1:
        raise ParameterError("--pairs, --facts and --interactions exclude each other.")
    run = {"run": str(path)}
    if interactions:
        of_items = load(path, trust, task=RECOMMENDATION).score(Path(interactions))
        print_found(run | of_items.to_dict(), _items_in_words(of_items))
        return
    if pairs:
        eraser = load(path, trust, task=LINKS)
        score = eraser.score(*read_pairs(pairs, named=eraser.graph_.named))
        auc = f"{score.auc:.4f} on {score.edges:,} links and {score.others:,} other pairs"
        rows = {"AUC": auc, "hits": _hits("Hits", score.hits), "MRR": f"{score.mrr:.4f}"}
        print_found(run | score.to_dict(), rows)
        return
    if facts:
        lines = "\n".join(line for _, line in read_lines(facts, "facts"))
        score = load(path, trust, task=LINKS).score(parse_facts(lines, "--facts"))
        mrr = f"{score.mrr:.4f} on {plural(score.facts, 'fact')}"
        print_found(run | score.to_dict(), {"MRR": mrr, "hits": _hits("hits", score.hits)})
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
    _evaluate(load(path, trust, task=task_of(path)), path)


def _evaluate(eraser: Any, path: Path) -> None:
    """Print the scores on the test nodes that are left."""
    nodes = eraser.graph_.labelled_test_nodes
    if len(nodes) == 0:
        raise GraphError(f"{path}: the run's graph has no test nodes with a label.")
    started = time.perf_counter()
    scores = eraser.evaluate(nodes)
    seconds = time.perf_counter() - started
    found = {
        "run": str(path),
        **{f"test_{name}": value for name, value in scores.items()},
        "test_nodes": len(nodes),
        "train_nodes": eraser.graph_.num_train,
        "context_nodes": eraser.graph_.num_sharded - eraser.graph_.num_train,
        "shards": len(eraser.shards_),
        "changes": len(eraser.receipts_),
        "seconds": seconds,
    }
    if answered(found):
        return
    others = {name: value for name, value in scores.items() if name != "f1"}
    said = [f"F1   {scores['f1']:.4f}"] if "f1" in scores else []
    said += [f"{name.upper().replace('_', ' ')} {value:.4g}" for name, value in others.items()]
    noun = "graph" if eraser.task.name == "graphs" else "node"
    words = f"test {', '.join(said)} on {plural(len(nodes), noun)}"
    print_line(f"{words}, in {duration(seconds)}")


def _hits(word: str, hits: Mapping[int, float]) -> str:
    return ", ".join(f"{word}@{k} {share:.4f}" for k, share in hits.items())


def _items_in_words(score: Any) -> dict[str, str]:
    return {
        f"recall@{score.k}": f"{score.recall:.4f} over {plural(score.users, 'user')}",
        f"NDCG@{score.k}": f"{score.ndcg:.4f}",
        "hit rate": f"{score.hit_rate:.4f}",
        "MRR": f"{score.mrr:.4f}",
        "coverage": f"{score.coverage:.4f}",
    }
