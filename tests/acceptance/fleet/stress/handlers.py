"""Handlers that leave a mark for every run, take a moment, and fail now and then."""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import Any

import psycopg

from tasker.errors import PermanentError, RetryableError
from tasker.step_handler import StepHandler, step_handler
from tasker.types import StepHandlerResult

RETRYABLE, PERMANENT = 0.15, 0.005
_connections: dict[str, psycopg.AsyncConnection[Any]] = {}
_lock = asyncio.Lock()


async def _mark(context: Any) -> None:
    """One row for each run: what a user's handler would have done outside."""
    url = os.environ["STRESS_DATABASE_URL"]
    async with _lock:
        if url not in _connections:
            _connections[url] = await psycopg.AsyncConnection.connect(url, autocommit=True)
        await _connections[url].execute(
            "insert into stress_effects (step_uuid, attempt, pid) values (%s, %s, %s)",
            (context.step_uuid, context.retry_count, os.getpid()),
        )


async def _run(context: Any) -> None:
    await _mark(context)
    luck = Random(f"{context.step_uuid}/{context.retry_count}")
    await asyncio.sleep(luck.random() * 0.03)
    if luck.random() < RETRYABLE:
        raise RetryableError("not this time")
    if luck.random() < PERMANENT:
        raise PermanentError("never")


@step_handler("stress.work")
async def work(context: Any) -> dict[str, Any]:
    """Do something."""
    await _run(context)
    return {"done": str(context.step_uuid)}


class Choose(StepHandler):
    """Decides what the task's input says: branches, or batches."""

    handler_name = "stress.choose"

    async def call(self, context: Any) -> StepHandlerResult:
        """Return the outcome of this step."""
        await _run(context)
        return self.success(context.get_input("choices")[context.step_name])
