"""grapheraser requests: submit requests to a running service, and follow them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import parse, parse_ids, read_lines, typed
from grapheraser.cli.output import answered, print_json, print_line, print_table, say
from grapheraser.errors import NothingToForgetError, ParameterError
from grapheraser.untrusted import MAX_LINES, parse_json

if TYPE_CHECKING:
    from grapheraser.service.client import Client, RequestState

_DEFAULT_URL = "http://127.0.0.1:8080"


class Action(StrEnum):
    """An action of `grapheraser requests`."""

    SUBMIT = "submit"
    LIST = "list"
    SHOW = "show"
    CANCEL = "cancel"
    RETRY = "retry"
    RECEIPT = "receipt"


def run(
    action: Annotated[Action, typer.Argument(metavar="submit|list|show|cancel|retry|receipt")],
    request: Annotated[str, typer.Argument(metavar="[REQUEST]")] = "",
    subject: str = "",
    nodes: str = "",
    cascade: str = "",
    edges: str = "",
    features: str = "",
    labels: str = "",
    file: str = "",
    idempotency_key: str = "",
    deadline: str = "",
    wait: bool = False,
    receipts: Path | None = None,
    state: str = "",
    limit: int = 20,
    url: Annotated[
        str, typer.Option(help=f"URL of the service; default GRAPHERASER_URL, else {_DEFAULT_URL}.")
    ] = "",
) -> None:
    """Submit requests to a running service, list, show or cancel them, collect receipts.

    The API key is read from GRAPHERASER_API_KEY.

    Options:
        action: What to do.
        request: Id of a request, for all but submit, list.
        subject: With submit: whom to forget, by the subject map.
        nodes: With submit: node ids, e.g. 10,101.
        cascade: With submit: types whose nodes go where they exist only through these.
        edges: With submit: edges, e.g. 3-17,4-8.
        features: With submit: nodes whose features to forget.
        labels: With submit: nodes whose labels to forget; 12-art: one of several.
        file: With submit: file with one request a line: {"subject": "ada"}, or ids of nodes.
        idempotency_key: With submit: your own name for it; twice the same is one request.
        deadline: With submit: until when, e.g. 2030-01-31T12:00:00Z.
        wait: With submit and show: wait until the request is completed.
        receipts: With receipt and submit --wait: folder for its parts.
        state: With list: only in these states, e.g. failed.
        limit: With list: how many at the most.
    """
    texts = {"nodes": nodes, "edges": edges, "features": features, "labels": labels}
    of_submit = {"subject": subject, "file": file, "deadline": deadline, **texts}
    of_submit |= {"idempotency-key": idempotency_key, "cascade": cascade}
    _check(action, request, of_submit, wait=wait, receipts=receipts, state=state)
    client = _client(url)
    match action:
        case Action.SUBMIT:
            also: dict[str, Any] = {"cascade": cascade.split(",")} if cascade else {}
            also |= {"deadline": deadline} if deadline else {}
            bodies = _bodies(client, subject, texts, file, also)
            done = _submitted(client, bodies, idempotency_key, wait=wait)
            files = [path for one in done for path in _handed_out(client, one, receipts)]
            _print_all(done, files)
        case Action.LIST:
            states = {"state": state.split(",")} if state else {}
            _print_all(list(client.requests(limit=limit, **states)), [])
        case Action.RECEIPT:
            found = client.show(request)
            _print_receipt(client, found, receipts)
        case Action.SHOW:
            _print_one(client.wait(request) if wait else client.show(request))
        case Action.CANCEL:
            _print_one(client.cancel(request))
        case Action.RETRY:
            _print_one(client.retry(request))


def _check(
    action: Action,
    request: str,
    of_submit: Mapping[str, str],
    *,
    wait: bool,
    receipts: Path | None,
    state: str,
) -> None:
    """Refuse options that have no part in an action."""
    takes_one = action not in (Action.SUBMIT, Action.LIST)
    if takes_one is not bool(request):
        wanted = "takes the id of a request" if takes_one else "takes no id"
        raise ParameterError(f"'requests {action}' {wanted}.")
    given = [f"--{name}" for name, text in of_submit.items() if text]
    if action is not Action.SUBMIT and given:
        raise ParameterError(f"{', '.join(given)} is of `requests submit`.")
    if wait and action not in (Action.SUBMIT, Action.SHOW):
        raise ParameterError("--wait is of `requests submit` and `requests show`.")
    if receipts is not None and not (
        action is Action.RECEIPT or (action is Action.SUBMIT and wait)
    ):
        raise ParameterError("--receipts is of `requests receipt` and `requests submit --wait`.")
    if state and action is not Action.LIST:
        raise ParameterError("--state is of `requests list`.")


def _client(url: str) -> Client:
    from grapheraser.service.client import Client

    key = os.environ.get("GRAPHERASER_API_KEY", "")
    if not key:
        raise ParameterError(
            "there is no API key.",
            hint="set GRAPHERASER_API_KEY; `grapheraser access RUN --create requester` makes one.",
        )
    return Client(url or os.environ.get("GRAPHERASER_URL") or _DEFAULT_URL, key)


def _bodies(
    client: Client, subject: str, texts: Mapping[str, str], file: str, also: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return what to submit: one request for the options, one for each line of the file.

    Each also says what is in ``also``.
    """
    named = bool(client.model()["named"])
    found: list[dict[str, Any]] = []
    one: dict[str, Any] = {"subject": subject} if subject else {}
    for kind, text in texts.items():
        if text:
            one[kind] = parse(typed(text), kind, named=named)
    if one:
        found.append(one)
    for place, line in read_lines(file, "requests") if file else ():
        found.append(_of_line(place, line, named=named))
    if not found:
        raise NothingToForgetError(
            "nothing to forget.",
            hint="use --subject, --nodes, --edges, --features, --labels or --file.",
        )
    return [{**body, **also} for body in found]


def _of_line(place: str, line: str, *, named: bool) -> dict[str, Any]:
    if not line.lstrip().startswith("{"):
        return {"nodes": parse_ids(line, "--file", named=named)}
    try:
        found: dict[str, Any] = parse_json(line, MAX_LINES)
    except ValueError as error:
        raise ParameterError(f"{place}: not a JSON object ({error}).") from error
    return found


def _submitted(
    client: Client, bodies: Sequence[Mapping[str, Any]], key: str, *, wait: bool
) -> list[RequestState]:
    if key and len(bodies) > 1:
        raise ParameterError("--idempotency-key names one request; the file has several.")
    found = [client.submit(body, idempotency_key=key or None) for body in bodies]
    if key and found[0]["state"] != "received":
        say(
            f"note: the key {key!r} was used before: this is the request of then, and nothing new "
            "was submitted."
        )
    return [client.wait(one["id"]) for one in found] if wait else found


def _handed_out(client: Client, found: Mapping[str, Any], folder: Path | None) -> list[str]:
    """Write the parts of a receipt to files, if anywhere."""
    from grapheraser.store import write_text

    if folder is None or not found["receipts"]:
        return []
    files = []
    for number, part in enumerate(client.receipt(found["id"]), start=1):
        file = folder / f"receipt-{found['id']}-{number:04}.json"
        write_text(file, part.to_json() + "\n")
        files.append(str(file))
    return files


def _print_receipt(client: Client, found: Mapping[str, Any], folder: Path | None) -> None:
    if folder is None:
        parts = [part.to_dict() for part in client.receipt(found["id"])]
        print_json({"request": found["id"], "parts": parts})
        return
    if not found["receipts"]:
        client.receipt(found["id"])  # says why there is nothing
    files = _handed_out(client, found, folder)
    if answered({"request": found["id"], "files": files}):
        return
    for file in files:
        print_line(f"handed out  {file}")


def _print_all(found: Sequence[Mapping[str, Any]], files: Sequence[str]) -> None:
    if answered({"requests": list(found)} | ({"files": list(files)} if files else {})):
        return
    rows = [
        (one["id"], one["kind"], one["state"], one["deadline"][:10], one["version"] or "")
        for one in found
    ]
    print_table("", ("request", "kind", "state", "deadline", "version"), rows)
    for file in files:
        print_line(f"handed out  {file}")
    if not found:
        say("there are no such requests.")


def _print_one(found: Mapping[str, Any]) -> None:
    if answered(found):
        return
    for name, value in found.items():
        if isinstance(value, list | dict):
            continue
        if value is not None:
            print_line(f"{name:<12}{value}")
    for line in found["out_of_scope"]:
        print_line(f"beyond      {line}")
