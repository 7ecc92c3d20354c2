"""Calls of the published client on a server, over connections shared by all clients of the process."""

from __future__ import annotations

from tasker.app.sync_wrapper import LoopThread, SyncWrapper, sync_method
from tasker.client.calls.fleet import FleetCalls
from tasker.client.calls.steps import StepCalls
from tasker.client.calls.tasks import TaskCalls
from tasker.client.connection import HttpConnection
from tasker.client.servers import ServerAddress
from tasker_core._runtime.client import PerProcess

_shared = PerProcess[dict[ServerAddress, tuple[LoopThread, HttpConnection]]](dict)


class _Calls(TaskCalls, StepCalls, FleetCalls):
    def __init__(self, connection: HttpConnection, initiator: str, source_system: str) -> None:
        self.connection, self.initiator, self.source_system = connection, initiator, source_system


class ServerCalls(SyncWrapper[_Calls]):
    """Calls of `tasker_core._runtime.client.DatabaseCalls`, sent to a server. They raise the errors of `HttpClient`."""

    def __init__(self, server: ServerAddress, initiator: str, source_system: str) -> None:
        loop, connection = _connected(server)
        super().__init__(loop, _Calls(connection, initiator, source_system))

    create_task = sync_method(_Calls.create_task)
    get_task = sync_method(_Calls.get_task)
    list_tasks = sync_method(_Calls.list_tasks)
    cancel_task = sync_method(_Calls.cancel_task)
    list_task_steps = sync_method(_Calls.list_task_steps)
    get_step = sync_method(_Calls.get_step)
    get_step_audit_history = sync_method(_Calls.get_step_audit_history)
    health_check = sync_method(_Calls.health_check)


def disconnect() -> None:
    """Close the shared connections; the next call opens one again."""
    with _shared.lock:
        connections = list(_shared.value.values())
        _shared.value.clear()
    for loop, connection in connections:
        loop.wait(connection.close())
        loop.stop()


def _connected(server: ServerAddress) -> tuple[LoopThread, HttpConnection]:
    with _shared.lock:
        if server not in _shared.value:
            loop = LoopThread("tasker client")
            loop.start()
            _shared.value[server] = (loop, HttpConnection(server))
        return _shared.value[server]
