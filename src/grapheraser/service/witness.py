"""A witness over HTTP (C2SP tlog-witness): a process of somebody else, with a key of its own."""

from __future__ import annotations

import logging

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from grapheraser.errors import GraphEraserError
from grapheraser.receipts.keys import PublicKey, read_verifier_key
from grapheraser.receipts.witness import MAX_BODY, TrustedLog, Witness
from grapheraser.service.api.app import Guard

_LOG = logging.getLogger("grapheraser.witness")


def witness_app(witness: Witness) -> Starlette:
    """Make the application of a witness."""

    async def add_checkpoint(request: Request) -> Response:
        body = await request.body()
        try:
            answer = await run_in_threadpool(witness.add_checkpoint, body)
        except GraphEraserError as error:  # of the disk: nothing was cosigned
            _LOG.error("%s", error.message)
            return PlainTextResponse("the witness can't keep its state\n", 503)
        if answer.status in (409, 422):
            # A log that was rewritten looks so, and so does one that only guessed the old size.
            _LOG.warning("refused (%d): %r", answer.status, body[-2000:].decode(errors="replace"))
        return Response(answer.body, answer.status, media_type=answer.media_type)

    async def key(request: Request) -> Response:
        return PlainTextResponse(f"{witness.key.line}\n")

    async def health(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    app = Starlette(
        routes=[
            Route("/add-checkpoint", add_checkpoint, methods=["POST"]),
            Route("/key", key),
            Route("/health", health),
        ]
    )
    app.add_middleware(Guard, max_bytes=MAX_BODY)
    return app


def trusted_log(text: str) -> TrustedLog:
    """Read the key of a log: a line with its origin, or PEM for any log that the key signs."""
    if "BEGIN" in text:
        return TrustedLog(PublicKey.read(text))
    origin, public = read_verifier_key(text)
    return TrustedLog(PublicKey(public), origin)
