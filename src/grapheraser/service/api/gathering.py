"""Submissions of many callers in few transactions, without a thread for each of them."""

from __future__ import annotations

import asyncio

from fastapi.concurrency import run_in_threadpool

from grapheraser.service.intake import AT_ONCE, Intake, Submission, Submitted, Ticket


class Gathering:
    """Gathers what is submitted while a transaction is being written; of one event loop.

    Args:
        intake: where requests are accepted.
    """

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._waiting: list[tuple[Ticket, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def submit(self, submission: Submission) -> Submitted:
        """Accept a request; returns once it is on the disk."""
        ticket = self._intake.ticket(submission)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((ticket, written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        await asyncio.shield(written)  # who hangs up does not take back what was sent
        return ticket.result()

    async def _write(self) -> None:
        try:
            while self._waiting:
                taken = self._waiting[:AT_ONCE]
                del self._waiting[: len(taken)]
                await run_in_threadpool(self._intake.write, [ticket for ticket, _ in taken])
                for _, written in taken:
                    if not written.done():
                        written.set_result(None)
        finally:
            self._writing = None
