"""What a client makes of a server that is away, slow, or none; and what it sends again."""

from __future__ import annotations

import json
import socket
from contextlib import aclosing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tasker.client import HttpClient, Retries
from tasker.client.calls.tasks import TIMES
from tasker.client.servers import ServerAddress
from tasker.clock import BackoffPolicy
from tasker.errors import (
    DatabaseUnavailable,
    DuplicateTask,
    InputInvalid,
    NotAuthenticated,
    NotPermitted,
    NotStorable,
    NotTasker,
    Overloaded,
    RequestTimeout,
    ServerUnreachable,
    TaskerError,
    TooManyRequests,
    UsageError,
)
from tasker.views.events import PublishedEvent
from tests.support.reports import sent_task
from tests.support.scripted_server import Reply, refusal, reply, scripted_server

AT_ONCE = Retries(attempts=3, first_seconds=0, longest_seconds=0)
TASK = sent_task(task_uuid="t")
HTML = reply(200, "<html>Welcome</html>", "text/html")
CUT = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"task_uuid"'
SOME = {"namespace": "shop", "context": {"amount": 1}}


def client_of(url: str, **options: Any) -> HttpClient:
    return HttpClient(url, **{"retries": AT_ONCE, **options})


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (HTML, NotTasker, "not a response of Tasker"),
        (reply(200, {"no": "task"}, "application/hal+json"), NotTasker, "not a response of Tasker"),
        (reply(200, "{", "application/json"), NotTasker, "not a response of Tasker"),
        (reply(302, "", "text/html", location="https://login.example.com/"), NotTasker, "redirects to https://login"),
        (reply(404, {"message": "not here"}), NotTasker, "404"),
        (reply(401, "<html>", "text/html"), NotAuthenticated, "401"),
        (reply(403, "<html>", "text/html"), NotPermitted, "403"),
        (refusal(401, "token_expired", "the token is over"), NotAuthenticated, "the token is over"),
        (refusal(403, "forbidden", "tasks:read is missing"), NotPermitted, "tasks:read"),
        (refusal(400, "a_new_code", "no"), UsageError, "no"),
        (refusal(400, "input_invalid", "no integer"), InputInvalid, "no integer"),
        (refusal(400, "too_many_streams", "no more"), TooManyRequests, "no more"),
        (refusal(500, "a_new_code", "no"), TaskerError, "no"),
        (refusal(503, "not_ready", "it starts"), ServerUnreachable, "it starts"),
        (b"220 mail.example.com ESMTP\r\n", ServerUnreachable, "closed the connection"),
    ],
)
async def test_an_answer_that_is_none_is_told_in_one_line_with_what_to_do(
    answer: bytes, kind: type[TaskerError], says: str
) -> None:
    async with scripted_server([answer]) as server, client_of(server.url) as client:
        with pytest.raises(kind) as raised:
            await client.get_task("t")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (None, ServerUnreachable),
        (CUT, ServerUnreachable),
        (reply(502, "<html>", "text/html"), ServerUnreachable),
        (refusal(503, "database_unavailable", retry_after=0), DatabaseUnavailable),
        (refusal(429, "too_many_requests", retry_after=0), TooManyRequests),
        (refusal(503, "overloaded", retry_after=0), Overloaded),
    ],
)
async def test_reading_is_tried_again_and_creating_without_a_key_is_not(first: Reply, kind: type[TaskerError]) -> None:
    async with scripted_server([first, first, reply(200, TASK)]) as server, client_of(server.url) as client:
        assert (await client.get_task("t")).status == "complete"
        assert len(server.heard) == 3
    async with scripted_server([first]) as server, client_of(server.url) as client:
        with pytest.raises(kind):
            await client.get_task("t")
        assert len(server.heard) == 3
        for change in (client.create_task("orders", **SOME), client.cancel_task("t")):
            with pytest.raises(kind):
                await change
        assert len(server.heard) == 5


async def test_a_create_with_a_key_whose_answer_was_lost_is_the_task_that_is_there() -> None:
    lost = [None, reply(200, {**TASK, "created": False, "correlation_id": "c"})]
    async with scripted_server(lost) as server, client_of(server.url) as client:
        task = await client.create_task("orders", idempotency_key="k", correlation_id="c", **SOME)
        bodies = server.bodies()
    assert task.task_uuid == "t"
    assert [body["on_duplicate"] for body in bodies] == ["refuse", "return_existing"]
    assert bodies[0] == {**bodies[1], "on_duplicate": "refuse"}


async def test_a_create_with_a_key_that_another_has_is_refused_also_when_an_answer_was_lost() -> None:
    lost = [CUT, reply(200, {**TASK, "created": False, "correlation_id": "of another"})]
    async with scripted_server(lost) as server, client_of(server.url) as client:
        with pytest.raises(DuplicateTask) as refused:
            await client.create_task("orders", idempotency_key="k", **SOME)
    assert refused.value.task_uuid == "t"


async def test_a_server_that_wants_to_be_left_alone_for_long_is_not_waited_for() -> None:
    async with (
        scripted_server([refusal(503, "overloaded", retry_after=3600)]) as server,
        client_of(server.url) as client,
    ):
        with pytest.raises(Overloaded) as raised:
            await client.get_task("t")
        assert len(server.heard) == 1
    assert raised.value.retry_after == 3600


async def test_a_server_that_says_nothing_is_given_up() -> None:
    sent: list[str] = []

    async def note(request: Any) -> None:
        sent.append(request.method)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with client_of(url, timeout=0.05) as client:
            client.connection._client.event_hooks = {"request": [note]}
            with pytest.raises(RequestTimeout, match=r"did not answer within 0\.05 seconds"):
                await client.get_task("t")
            assert sent == ["GET"], "it has had all the time that there is"
            with pytest.raises(RequestTimeout) as raised:
                await client.cancel_task("t")
    assert "may have been carried out" in (raised.value.hint or "")


async def test_where_nobody_listens_nothing_was_done() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with client_of(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(ServerUnreachable, match="cannot be reached") as raised:
            await client.create_task("orders", **SOME)
    assert "tasker server" in (raised.value.hint or "")


def event(number: int, to_state: str) -> str:
    data = {"step": "check", "step_uuid": "s", "at": f"2026-01-01T00:00:0{number}+00:00", "to_state": to_state}
    return f"event: transition\nid: {number}-{number}\ndata: {json.dumps(data)}\n\n"


def events(*parts: str) -> bytes:
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    return (head + "retry: 1000\n\n: nothing new\n\n" + "".join(parts)).encode()


async def test_a_stream_that_is_cut_goes_on_where_it_was_and_tells_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tasker.client.calls.tasks.TAKEN_UP", BackoffPolicy(0, 0))
    script = [
        events(event(1, "pending"), event(2, "in_progress"), "event: transition\nid: 3-3\ndata: {"),
        None,
        refusal(503, "too_many_streams", retry_after=0),
        events(event(2, "in_progress"), event(3, "complete")),
        b"HTTP/1.1 204 No Content\r\n\r\n",
        reply(200, TASK),
    ]
    async with scripted_server(script) as server, client_of(server.url) as client:
        found = [(each.kind, each.to_state) async for each in client.stream("t")]
        places = [line for each in server.heard for line in each.splitlines() if line.lower().startswith("last-event")]
    told = ["pending", "in_progress", "complete"]
    assert found == [*(("transition", state) for state in told), ("end", "complete")]
    assert [place.rpartition(" ")[2] for place in places] == ["2-2", "2-2", "2-2", "3-3"]


async def test_each_event_gives_a_stream_all_its_patience_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasker.client.calls.tasks.TAKEN_UP", BackoffPolicy(0, 0))
    away: list[Reply] = [None] * (TIMES - 1)  # and the end of the answer before it
    ended = [b"HTTP/1.1 204 No Content\r\n\r\n", reply(200, TASK)]
    script = [events(event(1, "pending")), *away, events(event(2, "in_progress")), *away, *ended]
    async with scripted_server(script) as server, client_of(server.url) as client:
        told = [each.to_state async for each in client.stream("t")]
    assert told == ["pending", "in_progress", "complete"]
    async with scripted_server([script[0], *away, None, *ended]) as server, client_of(server.url) as client:
        with pytest.raises(ServerUnreachable):
            [each async for each in client.stream("t")]


def domain_event(position: int) -> str:
    text = {field.name: "" for field in fields(PublishedEvent)} | {"event_name": "order.paid", "metadata": {}}
    return f"id: {position}\ndata: {json.dumps({**text, 'position': position})}\n\n"


@pytest.mark.parametrize("begin", [(domain_event(6),), ()], ids=["with an event", "without one"])
async def test_stream_of_domain_events_that_has_begun_is_taken_up_for_ever(
    monkeypatch: pytest.MonkeyPatch, begin: tuple[str, ...]
) -> None:
    monkeypatch.setattr("tasker.client.calls.events.AGAIN_SECONDS", 0)
    away: list[Reply] = [None] * 50
    script = [events(*begin), *away, events(domain_event(7)), *away, events(domain_event(8))]
    async with scripted_server(script) as server, client_of(server.url) as client:
        async with aclosing(client.stream_events(after=5)) as stream:
            told = [(await anext(stream)).position for _ in range(2 + len(begin))]
        places = [line.split()[1] for each in server.heard for line in each.splitlines() if "event-id" in line.lower()]
    assert told == [*([6] if begin else []), 7, 8]
    assert [places[0], places[1], places[51], places[52], places[-1]] == ["5", *(2 * ["6" if begin else "5"]), "7", "7"]


async def test_stream_of_domain_events_that_cannot_begin_raises() -> None:
    async with scripted_server([None]) as server, client_of(server.url) as client:
        with pytest.raises(ServerUnreachable):
            await anext(client.stream_events(after=5))


async def test_a_stream_of_a_server_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasker.client.calls.tasks.TAKEN_UP", BackoffPolicy(0, 0))
    async with scripted_server([None]) as server, client_of(server.url) as client:
        with pytest.raises(ServerUnreachable):
            await anext(client.stream("t"))


async def test_a_wait_outlasts_a_server_that_is_started_again_and_no_longer_absence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tasker.client.calls.tasks.TAKEN_UP", BackoffPolicy(0, 0))
    away: list[Reply] = [None] * AT_ONCE.attempts
    async with scripted_server([*away, *away, reply(200, TASK)]) as server, client_of(server.url) as client:
        assert (await client.wait("t")).status == "complete"
    async with scripted_server([None]) as server, client_of(server.url) as client:
        with pytest.raises(ServerUnreachable):
            await client.wait("t")


async def test_each_answer_gives_a_wait_all_its_patience_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasker.client.calls.tasks.TAKEN_UP", BackoffPolicy(0, 0))
    monkeypatch.setattr("tasker.client.calls.tasks.SLICE_SECONDS", 0)
    away: list[Reply] = [None] * (AT_ONCE.attempts * TIMES)
    runs = reply(200, {**TASK, "status": "steps_in_process"})
    async with (
        scripted_server([*away, runs, *away, reply(200, TASK)]) as server,
        client_of(server.url) as client,
    ):
        assert (await client.wait("t")).status == "complete"
    once_more = [*away, *[None] * AT_ONCE.attempts, reply(200, TASK)]
    async with scripted_server(once_more) as server, client_of(server.url) as client:
        with pytest.raises(ServerUnreachable):
            await client.wait("t")


async def test_what_cannot_be_sent_is_refused_before_it_is_and_numbers_stay_whole() -> None:
    async with (
        scripted_server([reply(201, {**TASK, "context": {"n": 2**70}})]) as server,
        client_of(server.url) as client,
    ):
        task = await client.create_task("orders", context={"n": 2**70})
        with pytest.raises(NotStorable, match="context"):
            await client.create_task("orders", context={"n": float("nan")})
        for call in (client.get_task("\udc80"), client.list_tasks(namespace="\udc80"), client.get_task("..")):
            with pytest.raises(UsageError):
                await call
        assert server.bodies()[0]["context"] == task.context == {"n": 2**70}
        assert len(server.heard) == 1


async def test_credentials_go_with_every_request_and_into_no_text(tmp_path: Path) -> None:
    async with scripted_server([reply(200, TASK)]) as server:
        for options, header in (({"token": "abc"}, "Bearer abc"), ({"api_key": "abc"}, "X-API-Key: abc")):
            async with client_of(server.url, **options) as client:
                await client.get_task("t")
            assert header.lower() in server.heard[-1].lower()
    assert "abc" not in repr(ServerAddress(server.url, token="abc"))
    no_certificates = tmp_path / "ca.pem"
    no_certificates.write_text("nothing")
    for wrong in (
        {"token": "a", "api_key": "b"},
        {"token": "a\nb"},
        {"ca_file": tmp_path / "none.pem"},
        {"ca_file": no_certificates},
    ):
        with pytest.raises(UsageError):
            HttpClient("http://localhost", **wrong)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://localhost",
        "http://",
        "http://a:b@host",
        "http://host:port",
        "http://h?x=1",
        "http://\0",
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        ServerAddress(url)
    assert "a:b" not in str(refused.value)
    assert refused.value.hint
