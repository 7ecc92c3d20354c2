"""Execution of awaitables that async subscribers return, in the subscriber's thread."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class _Kept(threading.local):
    """Event loop that a thread keeps for all its coroutines, created for the first one."""

    keeps = False
    runner: asyncio.Runner | None = None


_kept = _Kept()


@contextmanager
def one_loop() -> Iterator[None]:
    """Run all coroutines of this thread within the block in one event loop, so that they can share clients."""
    _kept.keeps = True
    try:
        yield
    finally:
        _kept.keeps, runner, _kept.runner = False, _kept.runner, None
        if runner is not None:
            runner.close()


def awaited(value: Any, limit: float) -> Any:
    """Return a plain value unchanged, or the result of an awaitable within `limit` seconds.

    Raises `TimeoutError` for an awaitable that takes longer, which is cancelled.
    """
    if not inspect.isawaitable(value):
        return value
    import asyncio

    coroutine = _within(value, limit)
    if _kept.keeps:
        _kept.runner = _kept.runner or asyncio.Runner()
        return _kept.runner.run(coroutine)
    return _run_in_a_thread(coroutine) if _has_running_loop() else asyncio.run(coroutine)


def _has_running_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_a_thread(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a new thread; the caller blocks, and so does the event loop running in it."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


async def _within(value: Awaitable[Any], limit: float) -> Any:
    import asyncio

    try:
        async with asyncio.timeout(limit) as allowed:
            return await value
    except TimeoutError:
        if allowed.expired():
            raise TimeoutError(f"Subscriber timeout: it was cancelled after {limit:g} seconds") from None
        raise
