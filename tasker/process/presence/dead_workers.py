"""Workers of this machine whose processes are gone: their steps need not wait until the lease expires."""

from __future__ import annotations

import socket

from tasker.db.queries import query
from tasker.services.engine.calls import Engine
from tasker.services.engine.process_registry import ProcessRegistry


async def end_dead_leases(engine: Engine) -> None:
    """End the leases of dead processes. Only for the embedded server, whose workers all run on this machine."""
    from tasker.db.embedded.watch import is_running  # loaded with the embedded server

    rows = await engine.connection.execute(query("tasks", "dead_local_workers"), {"host": socket.gethostname()})
    for worker, pid in rows:
        if not is_running(pid):
            await ProcessRegistry(engine.connection).stop(worker)
