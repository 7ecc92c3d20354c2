"""Check that an object bound to one event loop, such as a connection, is not used from another one."""

from __future__ import annotations

import asyncio

from tasker.errors import UsageError


def require_loop(own: asyncio.AbstractEventLoop) -> None:
    """Raise `UsageError` if the running event loop is not `own`."""
    if asyncio.get_running_loop() is not own:
        raise UsageError(
            "this call comes from another event loop than the one in which the app was started",
            hint="await it there (asyncio.run_coroutine_threadsafe), or use tasker.SyncApp, which serves every thread",
        )
