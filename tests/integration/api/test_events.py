"""Following a task: every transition once, in order, also when the connection is cut in the middle."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
import pytest_asyncio

import tasker
from tasker.clock import BackoffPolicy
from tasker.db.connection import Connection, Statements
from tasker.db.session import Rows
from tasker.server.application import Options, application
from tasker.server.sockets import HttpServer, listen
from tasker.services.submission.submit import Submission
from tasker.services.tasks import history as task_history
from tasker.services.tasks.history import HistoryPoller, TaskEvent, TaskEvents
from tasker.template import compile_text
from tests.integration.api.program import WAITING, order
from tests.integration.api.test_errors import UNKNOWN, problem
from tests.support.registered import submit_registered
from tests.support.waiting import LIMIT_SECONDS, LOOK_SECONDS


class Event(NamedTuple):
    kind: str
    place: str | None
    data: dict[str, Any]


@pytest_asyncio.fixture(loop_scope="module")
async def http_server(app: tasker.App) -> AsyncIterator[HttpServer]:
    made = HttpServer(application(app, Options(streams=2)), listen("127.0.0.1", 0), grace_seconds=5)
    await made.start()
    yield made
    await made.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def remote(http_server: HttpServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=http_server.address, timeout=30) as made:
        yield made


async def events(client: httpx.AsyncClient, task: str, after: str | None = None) -> AsyncIterator[Event]:
    """As a client of server-sent events reads them."""
    headers = {"Last-Event-ID": after} if after else {}
    async with client.stream("GET", f"/v1/tasks/{task}/events", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
            elif "data" in fields:
                yield Event(fields["event"], fields.get("id"), json.loads(fields["data"]))
                fields = {}


def named(found: list[Event]) -> list[tuple[str | None, str]]:
    return [(each.data["step"], each.data["to_state"]) for each in found if each.kind == "transition"]


async def history(client: httpx.AsyncClient, task: str) -> set[tuple[str | None, str]]:
    details = (await client.get(f"/v1/tasks/{task}/details")).json()
    return {(each["step"], each["to_state"]) for each in details["state_transitions"] + details["step_transitions"]}


async def test_a_stream_tells_everything_while_the_task_runs_and_ends_with_it(remote: httpx.AsyncClient) -> None:
    task = (await remote.post("/v1/tasks", json=order(1))).json()["task_uuid"]

    found = [event async for event in events(remote, task)]

    assert set(named(found)) == await history(remote, task)
    assert len(named(found)) == len({each.place for each in found if each.place})
    assert found[-1] == Event("end", None, {"status": "complete"})


async def test_a_stream_that_was_cut_anywhere_goes_on_where_it_was(remote: httpx.AsyncClient) -> None:
    task = (await remote.post("/v1/tasks", json=order(2), params={"wait": "20s"})).json()["task_uuid"]
    whole = [event async for event in events(remote, task)]
    transitions = [event for event in whole if event.kind == "transition"]

    for cut in range(1, len(transitions)):
        rest = [event async for event in events(remote, task, transitions[cut - 1].place)]
        assert named(rest) == named(transitions[cut:])
    ended = await remote.get(f"/v1/tasks/{task}/events", headers={"Last-Event-ID": str(transitions[-1].place)})
    assert ended.status_code == 204


async def test_cut_while_the_task_runs_nothing_is_lost_and_nothing_told_twice(remote: httpx.AsyncClient) -> None:
    task = (await remote.post("/v1/tasks", json=order(3))).json()["task_uuid"]
    first: list[Event] = []
    stream = events(remote, task)
    async for event in stream:
        first.append(event)
        if len(first) == 3:
            break
    await stream.aclose()  # type: ignore[attr-defined]

    rest = [event async for event in events(remote, task, first[-1].place)]

    assert set(named(first + rest)) == await history(remote, task)
    assert len({(event.place, *each) for event, each in zip(first, named(first), strict=True)}) == 3


async def test_late_commit_before_the_place_sends_the_last_minute_again(
    app: tasker.App, remote: httpx.AsyncClient
) -> None:
    task = (await remote.post("/v1/tasks", json=order(4), params={"wait": "20s"})).json()["task_uuid"]
    with psycopg.connect(app.database_url, autocommit=True) as admin:
        first = "(select min(created_at) from tasker.task_moves where task_uuid = m.task_uuid)"
        older = f"update tasker.task_moves m set created_at = created_at - interval '1 hour' where created_at = {first}"
        admin.execute(f"{older} and task_uuid = %s".encode(), [task])
    whole = [event async for event in events(remote, task)]
    told = [event for event in whole if event.kind == "transition"]
    times = [int(str(event.place).partition("-")[0]) for event in told]
    cut = next(at for at in range(1, len(told)) if times[at] > times[at - 1])

    rest = [event async for event in events(remote, task, f"{times[cut]}-{cut}")]  # it had read one less

    moved = [(None, "initializing"), (None, "enqueuing_steps"), (None, "steps_in_process")]
    assert named(told)[1:4] == moved
    assert named(rest) == [named(told)[0], *named(told)[4:]]


async def test_reader_that_reconnects_to_a_quiet_task_is_served_until_it_ends(
    app: tasker.App, remote: httpx.AsyncClient
) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    task = (await remote.post("/v1/tasks", json={"namespace": "nobody", "name": "waiting"})).json()["task_uuid"]
    first, had = events(remote, task), list[Event]()
    while len(had) < len(await history(remote, task)):
        had.append(await anext(first))
    await first.aclose()  # type: ignore[attr-defined]

    place = {"Last-Event-ID": str(had[-1].place)}
    async with remote.stream("GET", f"/v1/tasks/{task}/events", headers=place) as answer:
        assert answer.status_code == 200
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        await remote.delete(f"/v1/tasks/{task}")
        rest = [line async for line in lines]
    assert rest[-3:] == ["event: end", 'data: {"status":"cancelled"}', ""]
    assert not {f"id: {each.place}" for each in had} & {*rest}


async def test_a_stream_ends_in_order_when_the_server_stops_and_too_many_are_refused(
    app: tasker.App, http_server: HttpServer, remote: httpx.AsyncClient
) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    task = (await remote.post("/v1/tasks", json={"namespace": "nobody", "name": "waiting"})).json()["task_uuid"]
    first, second = events(remote, task), events(remote, task)
    assert (await anext(first)).kind == (await anext(second)).kind == "transition"

    refused = await remote.get(f"/v1/tasks/{task}/events")
    assert problem(refused, 503, "SERVICE_UNAVAILABLE", "too_many_streams").error.retry_after_seconds == 5
    stopping = asyncio.create_task(http_server.stop())
    assert {event.kind async for event in first} <= {"transition"}
    assert {event.kind async for event in second} <= {"transition"}
    await stopping


async def test_of_many_clients_that_come_at_once_no_more_are_let_in_than_may_be_and_refused_ones_take_no_place(
    app: tasker.App, http_server: HttpServer, remote: httpx.AsyncClient
) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    task = (await remote.post("/v1/tasks", json={"namespace": "nobody", "name": "waiting"})).json()["task_uuid"]
    for _ in range(2):
        for wrong in (UNKNOWN, "x"):
            assert (await remote.get(f"/v1/tasks/{wrong}/events")).status_code in (400, 404)

    asked = [remote.build_request("GET", f"/v1/tasks/{task}/events") for _ in range(12)]
    answers = await asyncio.gather(*(remote.send(each, stream=True) for each in asked))
    for each in answers:
        await each.aclose()

    assert sorted(each.status_code for each in answers) == [200] * 2 + [503] * 10


async def test_an_unknown_task_and_a_place_that_is_none_are_refused(client: httpx.AsyncClient) -> None:
    task = (await client.post("/v1/tasks", json=order(44), params={"wait": "20s"})).json()["task_uuid"]

    problem(await client.get(f"/v1/tasks/{UNKNOWN}/events"), 404, "NOT_FOUND", "task_not_found")
    wrong = await client.get(f"/v1/tasks/{task}/events", headers={"Last-Event-ID": "1; drop"})
    beyond = await client.get(f"/v1/tasks/{task}/events", headers={"Last-Event-ID": f"1-{'9' * 20}"})
    problem(wrong, 400, "BAD_REQUEST", "usage_error")
    problem(beyond, 400, "BAD_REQUEST", "usage_error")


async def test_the_head_of_an_answer_comes_without_its_body_and_ends_a_stream(
    app: tasker.App, remote: httpx.AsyncClient
) -> None:
    (task,) = await waiting(app, 1)
    for path in (f"/v1/tasks/{task}", f"/v1/tasks/{task}/events", "/health"):
        answer = await remote.head(path)
        assert (answer.status_code, answer.content) == (200, b""), path
    whole = await remote.get("/health")
    assert (await remote.head("/health")).headers["content-length"] == whole.headers["content-length"]
    assert (await remote.head(f"/v1/tasks/{UNKNOWN}")).status_code == 404
    await app.tasks.cancel(task)


async def waiting(app: tasker.App, number: int) -> list[str]:
    """Tasks that nobody serves."""
    (plan,) = compile_text(WAITING).plans
    registered = (await app.plans.register(plan)).plan
    return [(await submit_registered(app, registered, Submission({}))).task_uuid for _ in range(number)]


class Asked(Statements):
    """The database, and the tasks whose histories it was asked for."""

    def __init__(self, database: Statements) -> None:
        self.database, self.tasks = database, list[list[str]]()

    async def execute(self, statement: str, params: Any = None) -> Rows:
        self.tasks.append(params["tasks"])
        return await self.database.execute(statement, params)

    async def close(self) -> None:
        await self.database.close()


async def test_what_many_streams_ask_for_is_one_look_and_each_is_told_of_its_own_task(app: tasker.App) -> None:
    tasks = await waiting(app, 20)
    asked = Asked(app.tasks._engine.connection)
    followed = TaskEvents(asked, app.finished)

    streams = await asyncio.gather(*(followed.follow(task) for task in [*tasks, tasks[0]]))
    told = [asyncio.ensure_future(whole(stream)) for stream in streams if stream is not None]
    await asyncio.gather(*(app.tasks.cancel(task) for task in tasks))
    ends = [story[-1] for story in await asyncio.gather(*told)]

    assert sorted(asked.tasks[0]) == sorted(tasks)
    assert [each.to_state for each in ends] == ["cancelled"] * 21
    await followed.close()


async def test_a_stream_is_not_woken_while_nothing_happens_to_its_task(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_history, "POLLS", BackoffPolicy(LOOK_SECONDS, LOOK_SECONDS))
    tasks, asked, woken = await waiting(app, 5), Asked(app.tasks._engine.connection), list[str]()
    followed, news = TaskEvents(asked, app.finished), HistoryPoller.news

    def noted(looks: HistoryPoller, task: str, *args: Any) -> asyncio.Future[list[TaskEvent]]:
        woken.append(task)
        return news(looks, task, *args)

    monkeypatch.setattr(HistoryPoller, "news", noted)
    streams = await asyncio.gather(*(followed.follow(task) for task in tasks))
    told = [asyncio.ensure_future(whole(stream)) for stream in streams if stream is not None]
    async with asyncio.timeout(LIMIT_SECONDS):
        while len(asked.tasks) < 5 * len(tasks) or len(woken) < len(tasks):
            await asyncio.sleep(LOOK_SECONDS)
    once = sorted(woken)
    await asyncio.gather(*(app.tasks.cancel(task) for task in tasks))
    await asyncio.gather(*told)
    await followed.close()

    assert once == sorted(tasks)


async def whole(stream: AsyncIterator[TaskEvent | None]) -> list[TaskEvent]:
    return [event async for event in stream if event is not None]


async def test_a_client_that_goes_in_the_middle_of_a_look_costs_no_connection(
    app: tasker.App, caplog: pytest.LogCaptureFixture
) -> None:
    (task,) = await waiting(app, 1)
    path, state = f"/v1/tasks/{task}/events", {"told": asyncio.Event(), "gone": asyncio.Event()}
    scope = {"type": "http", "asgi": {"spec_version": "2.3"}, "method": "GET", "path": path, "raw_path": path.encode()}
    scope |= {
        "headers": [],
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "server": ("tasker", 80),
        "state": {},
    }

    async def receive() -> dict[str, str]:
        await state["gone"].wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if b"transition" in message.get("body", b""):
            state["told"].set()

    answered = asyncio.create_task(application(app)(scope, receive, send))
    await state["told"].wait()
    async with held(app.database_url, "tasker.task_moves") as waits:
        await waits()
        state["gone"].set()
        await answered
    assert (await app.views.health()) is not None

    assert [record.message for record in caplog.records if record.name.startswith("psycopg")] == []


@asynccontextmanager
async def held(url: str, table: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A table that nobody can read meanwhile; what is given returns when somebody tries to."""
    holder, other = Connection(url), Connection(url)
    waiting = f"select count(*) from pg_locks where not granted and relation = '{table}'::regclass"

    async def waits() -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            while await other.execute(waiting) == [(0,)]:
                await asyncio.sleep(LOOK_SECONDS)

    await holder.execute("begin")
    try:
        await holder.execute(f"lock table {table} in access exclusive mode")
        yield waits
    finally:
        await holder.execute("rollback")
        await holder.close()
        await other.close()
