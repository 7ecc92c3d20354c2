"""One connection: its requests have a limited head, arrive in time, and their answers are taken."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.api.connections.conftest import BODY_BYTES, GET, HOST, Serve
from tests.support.waiting import LOOK_SECONDS

POST = b"POST / HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
HEAD_BYTES = 65_536


def of_size(size: int) -> bytes:
    """A request whose head has this size."""
    begin, end = b"GET / HTTP/1.1\r\n" + HOST + b"X-Long: ", b"\r\n\r\n"
    return begin + b"a" * (size - len(begin) - len(end)) + end


async def test_head_within_limits_is_answered(serve: Serve) -> None:
    served = await serve()
    fields = b"".join(b"X-%d: y\r\n" % number for number in range(99))
    for request in (of_size(HEAD_BYTES), b"GET / HTTP/1.1\r\n" + HOST + fields + b"\r\n"):
        async with served.client() as client:
            for _ in range(3):  # the connection is kept
                await client.send(request)
                answer = await client.answer()
                assert (answer.status, answer.headers.get("server")) == (
                    200,
                    None,
                )  # it does not say what it is made of


@pytest.mark.parametrize(
    "request_bytes",
    [
        of_size(HEAD_BYTES + 1),
        b"GET / HTTP/1.1\r\nX-Endless: " + b"a" * HEAD_BYTES * 4,
        b"GET /" + b"a" * HEAD_BYTES * 4,
        b"GET / HTTP/1.1\r\n" + HOST + b"a:b\r\n" * 100 + b"\r\n",
        GET + b"\r\n" * HEAD_BYTES,
    ],
    ids=["one byte more", "endless header", "endless path", "many headers", "endless empty lines"],
)
async def test_larger_head_is_answered_431_and_ends_the_connection(serve: Serve, request_bytes: bytes) -> None:
    served = await serve(rest_seconds=0.1)
    async with served.client() as client:
        await client.send(request_bytes)
        answer = await client.answer()
        if request_bytes.startswith(GET):
            assert answer.status == 200
            answer = await client.answer()
        assert (answer.status, answer.problem["code"]) == (431, "headers_too_large")
        assert answer.headers["connection"] == "close"
        assert await client.rest() == b""


@pytest.mark.parametrize(
    "trailers", [b"a:b\r\n" * 101, b"X-Endless: " + b"a" * HEAD_BYTES * 2], ids=["many", "endless"]
)
async def test_trailers_count_as_headers(serve: Serve, trailers: bytes) -> None:
    served = await serve(rest_seconds=0.1)
    assert (await served.ask(CHUNKED + trailers))[0].status == 431
    async with served.client() as client:
        await client.send(CHUNKED + b"X-Sum: 1\r\n\r\n")
        assert (await client.answer()).body == b"read 1"


async def test_head_that_does_not_arrive_is_answered_408(serve: Serve) -> None:
    served = await serve(head_seconds=0.1, rest_seconds=0.1)
    for begun in (b"G", b"GET / HTTP/1.1\r\nHost: loc"):
        answer, rest = await served.ask(begun)
        assert (answer.status, answer.problem["code"], rest) == (408, "request_timeout", b"")
    async with served.client() as client:  # the second request of a connection, which its first byte begins
        await client.send(GET)
        assert (await client.answer()).status == 200
        await client.send(b"GET /")
        assert (await client.answer()).status == 408
    for nothing in (b"", b"\r\n"):
        async with served.client() as client:
            await client.send(nothing)
            assert await client.rest() == b""


async def test_body_that_does_not_arrive_is_answered_408_and_ends_the_connection(serve: Serve) -> None:
    served = await serve(seconds=0.1, rest_seconds=0.1)
    async with served.client() as client:
        await client.send(POST + b"Content-Length: 5000\r\n\r\n")
        answer, ended = await client.answer(), asyncio.create_task(client.rest())
        assert (answer.status, answer.problem["code"]) == (408, "request_timeout")
        while not ended.done():  # whatever still comes
            client.writer.write(b"x")
            await asyncio.sleep(LOOK_SECONDS)
        assert await ended == b""


async def test_after_413_the_connection_is_kept_when_the_rest_arrives(serve: Serve) -> None:
    served = await serve(rest_seconds=0.1)
    async with served.client() as client:
        await client.send(POST + b"Content-Length: %d\r\n\r\n" % (BODY_BYTES + 1))
        assert (await client.answer()).status == 413
        await client.send(b"x" * (BODY_BYTES + 1))
        await client.send(GET)
        assert (await client.answer()).status == 200
        await client.send(POST + b"Content-Length: %d\r\n\r\n" % (BODY_BYTES + 1))
        assert (await client.answer()).status == 413
        assert await client.rest() == b""


async def test_malformed_request_is_a_problem(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = await serve(rest_seconds=0.1)
    answer, rest = await served.ask(b"\x16\x03\x01 no HTTP\r\n\r\n")
    assert (answer.status, answer.problem["code"], rest) == (400, "malformed_request", b"")
    answer, rest = await served.ask(POST + b"Transfer-Encoding: chunked\r\n\r\nno size\r\n")
    assert (answer.status, answer.problem["code"], rest) == (400, "malformed_request", b"")
    assert not caplog.records


async def test_upgrade_is_answered_as_a_request_and_ends_the_connection(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    served = await serve()
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    answer, rest = await served.ask(b"GET / HTTP/1.1\r\n" + HOST + upgrade + b"frames")
    assert (answer.status, answer.headers["connection"], rest) == (200, "close", b"")
    assert not caplog.records


async def test_requests_behind_each_other_are_answered_up_to_a_limit(serve: Serve) -> None:
    served = await serve(pipelined=4, rest_seconds=0.1)
    async with served.client() as client:
        await client.send(GET * 4)
        assert [(await client.answer()).status for _ in range(4)] == [200] * 4
        await client.send(GET * 1000)
        answers = [(await client.answer()).status for _ in range(5)]
        assert answers == [200] * 5
        assert await client.rest() == b""


async def test_client_that_takes_no_answer_loses_its_connection(serve: Serve) -> None:
    served = await serve(stall_seconds=0.1)
    for version in (b"1.0", b"1.1"):
        async with served.client() as client:
            client.writer.transport.pause_reading()
            await client.send(b"GET /?bytes=30000000 HTTP/" + version + b"\r\n" + HOST + b"\r\n")
            async with served.client() as other:
                await other.send(GET)
                assert (await other.answer()).status == 200
            while served.server.connections:
                await asyncio.sleep(LOOK_SECONDS)


async def test_old_connection_is_closed_with_its_next_answer(serve: Serve) -> None:
    served = await serve(age_seconds=0)
    answer, rest = await served.ask(GET)
    assert (answer.status, answer.headers["connection"], rest) == (200, "close", b"")
