"""Workers of this machine whose processes are gone: their steps need not wait for the lease to run out."""

from __future__ import annotations

import os
import socket

from tasker.db.queries import query
from tasker.services.engine.calls import Engine
from tasker.services.engine.process_registry import ProcessRegistry


async def end_dead_leases(engine: Engine) -> None:
    """End the leases of dead processes. Only for the embedded server, whose workers are all of this machine."""
    rows = await engine.connection.execute(query("tasks", "dead_local_workers"), {"host": socket.gethostname()})
    for worker, pid in rows:
        if not _alive(pid):
            await ProcessRegistry(engine.connection).stop(worker)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
