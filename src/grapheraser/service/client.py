"""A client of the service, with the standard library alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from grapheraser.errors import ParameterError, ServiceError

DEFAULT_URL = "http://127.0.0.1:8080"
_PREFIX = "/api/v1"
_DONE = ("completed", "cancelled")


class Client:
    """Speaks to a service.

    Args:
        url: where it listens.
        key: an API key.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, url: str = DEFAULT_URL, key: str = "", timeout: float = 30.0) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ParameterError.of("url", "Client", "http://HOST:PORT or https://HOST", url)
        self._url, self._key, self._timeout = url.rstrip("/"), key, timeout

    def submit(
        self, asked: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """Submit a request to forget; the answer says how far it has come.

        Args:
            asked: subject, nodes, edges, features, labels and deadline, as the API takes them.
            idempotency_key: your own name for it; submitted again, it is the same request.
        """
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self._object("POST", f"{_PREFIX}/requests", asked, headers)

    def requests(self, *, limit: int = 100, **filters: Any) -> Iterator[dict[str, Any]]:
        """Requests, newest first, at most ``limit``; ``state`` and ``late`` choose among them."""
        left, cursor = limit, None
        while left > 0:
            query = {**filters, "limit": min(left, 1000)}
            query |= {} if cursor is None else {"cursor": cursor}
            page = self._object("GET", f"{_PREFIX}/requests?{urlencode(query, doseq=True)}")
            yield from page["requests"]
            left, cursor = left - len(page["requests"]), page["cursor"]
            if cursor is None:
                return

    def show(self, name: str) -> dict[str, Any]:
        """How far a request has come."""
        return self._object("GET", f"{_PREFIX}/requests/{quote(name, safe='')}")

    def cancel(self, name: str) -> dict[str, Any]:
        """Cancel a request that waits."""
        return self._object("DELETE", f"{_PREFIX}/requests/{quote(name, safe='')}")

    def retry(self, name: str) -> dict[str, Any]:
        """Let a failed request be tried again at once."""
        return self._object("POST", f"{_PREFIX}/requests/{quote(name, safe='')}/retry")

    def wait(self, name: str, seconds: float = 600.0) -> dict[str, Any]:
        """Wait until a request is completed or cancelled; a `ServiceError` after so long."""
        until, pause = time.monotonic() + seconds, 0.05
        while True:
            found = self.show(name)
            if found["state"] in _DONE:
                return found
            if time.monotonic() + pause > until:
                raise ServiceError(
                    f"the request is still {found['state']} after {seconds:g} seconds.",
                    hint="it goes on; ask again with `grapheraser requests show`.",
                )
            time.sleep(pause)
            pause = min(1.0, 1.5 * pause)

    def receipt(self, name: str) -> list[dict[str, Any]]:
        """The parts of the receipt of a completed request."""
        found = self._object("GET", f"{_PREFIX}/requests/{quote(name, safe='')}/receipt")
        parts: list[dict[str, Any]] = found["parts"]
        return parts

    def model(self) -> dict[str, Any]:
        """What is served."""
        return self._object("GET", f"{_PREFIX}/model")

    def get(self, path: str) -> Any:
        """The JSON that any path answers with."""
        return self.call("GET", path)[1]

    def _object(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        found = self.call(method, path, body, headers)[1]
        if not isinstance(found, dict):
            raise ServiceError(f"{self._url} does not answer like a service.")
        return found

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Call a path; returns the status and the JSON, or raises what the problem says."""
        sent = {"Accept": "application/json", **(headers or {})}
        if self._key:
            sent["Authorization"] = f"Bearer {self._key}"
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            sent["Content-Type"] = "application/json"
        request = Request(self._url + path, data=content, headers=sent, method=method)
        try:
            with urlopen(request, timeout=self._timeout) as response:
                text = response.read()
                return response.status, json.loads(text) if text else None
        except HTTPError as error:
            raise _problem(error) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ServiceError(
                f"can't reach the service at {self._url}: {reason}.",
                hint="is `grapheraser serve` running there?",
            ) from None
        except ValueError:
            raise ServiceError(f"{self._url} does not answer like a service.") from None


def _problem(error: HTTPError) -> ServiceError:
    try:
        found = json.loads(error.read())
        return ServiceError(str(found["detail"]), hint=found.get("hint"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ServiceError(f"the service answered {error.code}.")
