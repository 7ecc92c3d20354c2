"""What belongs to one event loop, as connections do, refuses the others before it is touched."""

from __future__ import annotations

import asyncio

from tasker.errors import UsageError


def require_loop(own: asyncio.AbstractEventLoop) -> None:
    """Raises `UsageError` where another loop runs than this one."""
    if asyncio.get_running_loop() is not own:
        raise UsageError(
            "this call comes from another event loop than the one in which the app was started",
            hint="await it there (asyncio.run_coroutine_threadsafe), or use tasker.SyncApp, which serves every thread",
        )
