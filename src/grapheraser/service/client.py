"""A client of the service, with the standard library and NumPy alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from grapheraser import errors
from grapheraser.errors import ParameterError, ServiceError
from grapheraser.receipts.checking import Checked, check_part
from grapheraser.receipts.keys import PublicKey
from grapheraser.receipts.part import Part, read_parts
from grapheraser.untrusted import MAX_LINES, parse_json, read_named

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

DEFAULT_URL = "http://127.0.0.1:8080"
_PREFIX = "/api/v1"
_DONE = ("completed", "cancelled")
_PEM_END = "-----END PUBLIC KEY-----"
# The error that each kind of problem is raised as; all others are a `ServiceError`.
_ERRORS: dict[str, type[ServiceError]] = {
    "unknown-request": errors.UnknownRequestError,
    "unknown-subject": errors.UnknownSubjectError,
    "conflict": errors.ConflictError,
    "not-completed": errors.ConflictError,
    "database-unavailable": errors.DatabaseError,
}


class RequestState(TypedDict):
    """A request as the service answers it; times as ISO 8601."""

    id: str
    kind: str
    state: str
    counts: dict[str, int]
    received: str
    deadline: str
    late: bool
    completed: str | None
    attempts: int
    reason: str | None
    retry_at: str | None
    version: int | None
    receipts: int
    out_of_scope: list[str]


class Prediction(NamedTuple):
    """Answers of one version of the model."""

    version: int  # the size of the log of receipts that led to it
    # Arrays by name, a row for each node or pair: ``posteriors``, ``classes`` and ``class_names``
    # of nodes, ``probabilities`` of links.
    outputs: dict[str, NDArray[Any]]


class Client:
    """Speaks to a service: submits requests, waits, collects and checks receipts, predicts.

    What the service refuses is a `ServiceError` with the reason and a hint.

    Args:
        url: of the service, such as ``https://erasure.example.org``.
        key: an API key; its role says what the client may do.
        timeout: seconds that one call may take.
    """

    def __init__(self, url: str = DEFAULT_URL, key: str = "", timeout: float = 30.0) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ParameterError.of("url", "Client", "http://HOST:PORT or https://HOST", url)
        self._url, self._key, self._timeout = url.rstrip("/"), key, timeout

    def __repr__(self) -> str:
        return f"Client({self._url!r})"  # without the key

    # -- requests -------------------------------------------------------------------------------

    def submit(
        self,
        content: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **named: Any,
    ) -> RequestState:
        """Submit a request to forget; once this returns, the service has it on its disk.

        Args:
            content: what it names, as the API takes it; or name it by keywords.
            idempotency_key: your own name for it; submitted again, it is the same request.
            **named: ``nodes``, ``edges``, ``features`` and ``labels`` (ids, or names where nodes
                have names; of ``labels`` also pairs of a node and a target), ``subject``,
                ``cascade``, ``deadline``.
        """
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        body = {**(content or {}), **named}
        return cast("RequestState", self._object("POST", f"{_PREFIX}/requests", body, headers))

    def requests(self, *, limit: int = 100, **filters: Any) -> Iterator[RequestState]:
        """List requests, newest first.

        Args:
            limit: how many at the most.
            **filters: ``state``, one or several; ``late``, only those past their deadline.
        """
        left, cursor = limit, None
        while left > 0:
            query = {**filters, "limit": min(left, 1000)}
            query |= {} if cursor is None else {"cursor": cursor}
            page = self._object("GET", f"{_PREFIX}/requests?{urlencode(query, doseq=True)}")
            yield from page["requests"]
            left, cursor = left - len(page["requests"]), page["cursor"]
            if cursor is None:
                return

    def show(self, name: str) -> RequestState:
        """Return the state of a request.

        Args:
            name: the id of a request.
        """
        return cast("RequestState", self._object("GET", _of_request(name)))

    def cancel(self, name: str) -> RequestState:
        """Cancel a request that waits.

        Args:
            name: the id of a request.
        """
        return cast("RequestState", self._object("DELETE", _of_request(name)))

    def retry(self, name: str) -> RequestState:
        """Let a failed request be tried again at once.

        Args:
            name: the id of a request.
        """
        return cast("RequestState", self._object("POST", f"{_of_request(name)}/retry"))

    def wait(self, name: str, seconds: float = 600.0) -> RequestState:
        """Wait until a request is completed or cancelled.

        Args:
            name: the id of a request.
            seconds: how long at the most.

        Raises:
            ServiceError: it takes longer, or it failed and is not tried again by itself.
        """
        until, pause = time.monotonic() + seconds, 0.05
        while True:
            found = self.show(name)
            if found["state"] in _DONE:
                return found
            if found["state"] == "failed" and found["retry_at"] is None:
                raise ServiceError(
                    f"request {name} failed: {found['reason']}.",
                    hint="mend the cause and call `retry`, or cancel it.",
                )
            if time.monotonic() + pause > until:
                raise ServiceError(
                    f"request {name} is still {found['state']} after {seconds:g} seconds.",
                    hint="it goes on; ask again later.",
                )
            time.sleep(pause)
            pause = min(1.0, 1.5 * pause)

    # -- receipts -------------------------------------------------------------------------------

    def receipt(self, name: str) -> list[Part]:
        """Collect the receipt of a completed request: a part for each thing that it named.

        The service destroys it a day after it was first collected, so keep ``part.to_json()``.

        Args:
            name: the id of a request.
        """
        return read_parts(json.dumps(self._object("GET", f"{_of_request(name)}/receipt")))

    def verify(
        self, parts: Iterable[Part], key: str | Path | None = None, checkpoint: str | None = None
    ) -> list[Checked]:
        """Check parts of a receipt on this machine; raise `VerificationError` unless all hold.

        Args:
            parts: what `receipt` returned.
            key: the operator's public key, from somebody whom you trust: PEM, or the path of such a
                file. None: those that the service names, which shows no more than that it agrees
                with itself.
            checkpoint: of the log, from somebody whom you trust.
        """
        if isinstance(key, Path):
            text = read_named(key).decode()
        else:
            text = self._text(f"{_PREFIX}/log/keys") if key is None else key
        keys = [PublicKey.read(one + _PEM_END) for one in text.split(_PEM_END)[:-1]]
        keys = keys or [PublicKey.read(text.strip())]
        return [check_part(part, keys, checkpoint) for part in parts]

    def checkpoint(self) -> str:
        """Return the signed checkpoint of the log; keep it elsewhere."""
        return self._text(f"{_PREFIX}/log/checkpoint")

    # -- the model ------------------------------------------------------------------------------

    def model(self) -> dict[str, Any]:
        """Describe the served model."""
        return self._object("GET", f"{_PREFIX}/model")

    def predict(self, nodes: ArrayLike) -> Prediction:
        """Predict by the version that is served now.

        Args:
            nodes: ids or names of nodes; of a run that predicts links, pairs of them, or facts: a
                head, a relation and a tail.
        """
        import numpy as np

        path, asks = self._asked
        values = np.asarray(nodes)
        tensor = {"shape": list(values.shape), "data": values.ravel().tolist(), **asks}
        found = self._object("POST", f"{path}/infer", {"inputs": [tensor]})
        kinds: dict[str, Any] = {"FP32": np.float32, "INT64": np.int64, "BYTES": np.str_}
        outputs = {
            one["name"]: np.array(one["data"], kinds.get(one["datatype"])).reshape(one["shape"])
            for one in found["outputs"]
        }
        return Prediction(int(found["model_version"]), outputs)

    @cached_property
    def _asked(self) -> tuple[str, dict[str, str]]:
        """The path of the model, and the name and datatype of what it is asked with."""
        path = f"/v2/models/{quote(self.model()['name'], safe='')}"
        (given,) = self._object("GET", path)["inputs"]
        return path, {"name": given["name"], "datatype": given["datatype"]}

    # -- any call -------------------------------------------------------------------------------

    def get(self, path: str) -> Any:
        """Return the JSON that any path answers with.

        Args:
            path: of a route, with its query.
        """
        return self._json(self._sent("GET", path))

    def _object(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        found = self._json(self._sent(method, path, body, headers))
        if not isinstance(found, dict):
            raise self._no_service()
        return found

    def _json(self, text: bytes) -> Any:
        try:
            return parse_json(text, MAX_LINES) if text else None
        except ValueError:
            raise self._no_service() from None

    def _text(self, path: str) -> str:
        return self._sent("GET", path).decode(errors="replace")

    def _sent(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Send a request; return what is answered, or raise a `ServiceError`."""
        sent = {"Accept": "application/json, */*", **(headers or {})}
        if self._key:
            sent["Authorization"] = f"Bearer {self._key}"
        content = None if body is None else json.dumps(body, default=_plain).encode()
        if content is not None:
            sent["Content-Type"] = "application/json"
        request = Request(self._url + path, data=content, headers=sent, method=method)
        try:
            with build_opener(_NoRedirect).open(request, timeout=self._timeout) as response:
                answer: bytes = response.read()
                return answer
        except HTTPError as error:
            raise _problem(error) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ServiceError(
                f"can't reach the service at {self._url}: {reason}.",
                hint="is `grapheraser serve` running there?",
            ) from None

    def _no_service(self) -> ServiceError:
        return ServiceError(f"{self._url} does not answer like a service.")


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: another host would be given the key."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Answer with the redirect itself, as an error."""


def _of_request(name: str) -> str:
    return f"{_PREFIX}/requests/{quote(name, safe='')}"


def _plain(value: Any) -> Any:
    """Turn arrays, sets and times into what JSON has."""
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{type(value).__name__} can't be sent to the service")


def _problem(error: HTTPError) -> ServiceError:
    try:
        found = parse_json(error.read())
        kind = _ERRORS.get(str(found["type"]).rpartition(":")[2], ServiceError)
        hint = found.get("hint")
        if error.code == 401:
            hint = "`grapheraser access RUN --create ROLE` makes a key."
        return kind(str(found["detail"]), hint=hint)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ServiceError(f"the service answered {error.code}.")
