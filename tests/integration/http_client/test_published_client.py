"""The client of the published names: its own calls answer the same through a server as on the database."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

import tasker
from tasker.client.servers import Profiles, ServerAddress, profiles_file, server_at, write_profiles
from tasker.errors import (
    DuplicateTask,
    InputInvalid,
    ServerUnreachable,
    StateMachineError,
    TaskerError,
    TaskNotFound,
    TemplateNotFound,
    UsageError,
)
from tasker.server.sockets import HttpServer
from tasker.template import compile_text
from tasker_core import TaskerClient
from tasker_core._runtime.client import Calls, DatabaseCalls, disconnect
from tasker_core._runtime.responses import TaskResponse
from tasker_core._runtime.server_calls import ServerCalls
from tests.integration.api.program import WAITING

NOBODY = "01900000-0000-7000-8000-000000000000"
Clients = dict[str, Calls]
FORKED = """
import os
from tasker_core import TaskerClient
from tasker_core._runtime.responses import TaskResponse

print("at first:", TaskerClient().health_check().healthy, flush=True)
child = os.fork()
if not child:
    try:
        print("in the copy:", TaskerClient().health_check().healthy, flush=True)
    finally:
        os._exit(0)
os.waitpid(child, 0)
print("here:", TaskerClient().health_check().healthy)
"""


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, app: tasker.App) -> Iterator[None]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", app.database_url)
    for name in ("TASKER_URL", "TASKER_PROFILE", "TASKER_TOKEN", "TASKER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    disconnect()  # from the database of another test
    yield
    disconnect()


@pytest_asyncio.fixture(loop_scope="module")
async def clients(nothing_named: None, http_server: HttpServer) -> AsyncIterator[Clients]:
    """On the database and through its server, of one name."""
    server = server_at(http_server.address)
    yield {"database": DatabaseCalls("ann", "till"), "server": ServerCalls(server, "ann", "till")}


async def on_both(clients: Clients, ask: Callable[[Calls], Any]) -> Any:
    """What both answer, which is the same."""
    found = [await asyncio.to_thread(ask, client) for client in clients.values()]
    assert found[0] == found[1]
    return found[0]


def create(client: Calls, name: str, **request: Any) -> TaskResponse:
    return client.create_task(name, **{"context": {}, "version": "1.0.0", "reason": "a test", **request})


async def finished(app: tasker.App, client: Calls, **request: Any) -> TaskResponse:
    created = await asyncio.to_thread(create, client, "orders", namespace="shop", **request)
    await app.finished(created.task_uuid)
    return created


@pytest.mark.parametrize("by", ["database", "server"])
async def test_every_published_call_answers_the_same(app: tasker.App, clients: Clients, by: str) -> None:
    amount = {"database": 701, "server": 702}[by]
    more = {"reason": "because", "priority": 3, "tags": ["a"], "idempotency_key": f"published {by}"}
    created = await finished(app, clients[by], context={"amount": amount}, **more)

    task = await on_both(clients, lambda client: client.get_task(created.task_uuid))
    assert (task.status, task.context, task.initiator, task.source_system) == (
        "complete",
        {"amount": amount},
        "ann",
        "till",
    )
    assert (task.reason, task.priority, task.tags) == ("because", 3, ["a"])
    _, charge = await on_both(clients, lambda client: client.list_task_steps(created.task_uuid))
    assert await on_both(clients, lambda client: client.get_step(created.task_uuid, charge.step_uuid)) == charge
    (audit,) = await on_both(clients, lambda client: client.get_step_audit_history(created.task_uuid, charge.step_uuid))
    assert (audit.step_name, audit.success) == ("charge", True)
    page = await on_both(clients, lambda client: client.list_tasks(limit=2, namespace="shop", status="complete"))
    assert created.task_uuid in [each.task_uuid for each in page.tasks]
    for client in clients.values():
        assert (await asyncio.to_thread(client.health_check)).healthy


@pytest.mark.parametrize("by", ["database", "server"])
async def test_what_is_refused_raises_the_same(app: tasker.App, clients: Clients, by: str) -> None:
    client, amount = clients[by], {"database": 711, "server": 712}[by]
    shop: dict[str, Any] = {"namespace": "shop", "context": {"amount": amount}}
    done = await finished(app, client, context={"amount": amount}, idempotency_key=f"refused {by}")
    refused: list[tuple[type[Exception], Callable[[], Any]]] = [
        (TaskNotFound, lambda: client.get_task(NOBODY)),
        (TaskNotFound, lambda: client.list_task_steps(NOBODY)),
        (StateMachineError, lambda: client.cancel_task(done.task_uuid)),
        (DuplicateTask, lambda: create(client, "orders", **shop, idempotency_key=f"refused {by}")),
        (TemplateNotFound, lambda: create(client, "orders", **shop, version="9.9.9")),
        (InputInvalid, lambda: create(client, "orders", namespace="shop", context={"amount": "many"})),
        (UsageError, lambda: client.get_task("7")),
    ]
    for error, ask in refused:
        with pytest.raises(error):
            await asyncio.to_thread(ask)


@pytest.mark.parametrize("given", [[], 0], ids=repr)
async def test_an_input_that_is_no_object_is_refused_also_where_it_is_empty(clients: Clients, given: Any) -> None:
    for client in clients.values():
        with pytest.raises(TaskerError, match="an object"):
            await asyncio.to_thread(create, client, "orders", namespace="shop", context=given)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("by", ["database", "server"])
async def test_a_process_that_is_forked_connects_by_itself(
    http_server: HttpServer, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "server":
        monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/none")
        monkeypatch.setenv("TASKER_URL", http_server.address)
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORKED, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, wrong = await program.communicate()
    assert said.decode().splitlines() == ["at first: True", "in the copy: True", "here: True"], wrong.decode()


async def test_a_task_is_cancelled_through_a_server(app: tasker.App, clients: Clients) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    for client in clients.values():
        created = await asyncio.to_thread(create, client, "waiting", namespace="nobody")
        done = await asyncio.to_thread(client.cancel_task, created.task_uuid)
        assert done == {"task_uuid": created.task_uuid, "status": "cancelled", "previous_status": "steps_in_process"}


async def test_the_server_of_the_environment_is_asked_and_that_of_a_profile(
    http_server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/none")
    monkeypatch.setenv("TASKER_URL", http_server.address)
    assert (await asyncio.to_thread(TaskerClient().health_check)).healthy

    monkeypatch.setenv("TASKER_URL", "")
    write_profiles(profiles_file(), Profiles({"here": ServerAddress(http_server.address)}))
    monkeypatch.setenv("TASKER_PROFILE", "here")
    assert (await asyncio.to_thread(TaskerClient().health_check)).healthy

    monkeypatch.setenv("TASKER_URL", "http://127.0.0.1:9")
    with pytest.raises(RuntimeError, match="cannot be reached") as raised:
        await asyncio.to_thread(TaskerClient().health_check)
    assert isinstance(raised.value.__cause__, ServerUnreachable)


async def test_a_program_of_tasker_core_asks_the_same_server(
    app: tasker.App, http_server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/none")
    monkeypatch.setenv("TASKER_URL", http_server.address)
    client = TaskerClient()
    request: dict[str, Any] = {"namespace": "shop", "context": {"amount": 721}}
    created = await asyncio.to_thread(client.create_task, "orders", **request)
    await app.finished(created.task_uuid)

    task = await asyncio.to_thread(client.get_task, created.task_uuid)
    assert (task.status, task.initiator, task.source_system) == ("complete", "tasker-core-python", "tasker-core")
    steps = await asyncio.to_thread(client.list_task_steps, created.task_uuid)
    assert [step.name for step in steps] == ["check", "charge"]
    assert (await asyncio.to_thread(client.get_step, created.task_uuid, steps[0].step_uuid)) == steps[0]
    assert len(await asyncio.to_thread(client.get_step_audit_history, created.task_uuid, steps[0].step_uuid)) == 1
    assert created.task_uuid in [each.task_uuid for each in (await asyncio.to_thread(client.list_tasks)).tasks]
    assert (await asyncio.to_thread(client.health_check)).healthy
    with pytest.raises(RuntimeError):
        await asyncio.to_thread(client.cancel_task, created.task_uuid)
