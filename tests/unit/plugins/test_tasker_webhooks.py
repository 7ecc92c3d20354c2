"""One request of a webhook: what signs it, where it may go, and what an answer means."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from tasker.outgoing import permitted
from tasker_webhooks.posting import Poster
from tasker_webhooks.signing import headers, new_secret
from tasker_webhooks.table import Endpoint, WebhooksTable
from tests.integration.api.test_options import self_signed
from tests.support.scripted_server import Reply, reply, scripted_server

LOOPBACK: dict[str, Any] = {"private_networks": ("127.0.0.0/8",), "plain_http": True}
PUBLISHED = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TAKEN = reply(204, "")


def poster(**settings: Any) -> Poster:
    return Poster(WebhooksTable(**{**LOOPBACK, "timeout_seconds": 5, **settings}))


def test_a_body_is_signed_as_standard_webhooks_say() -> None:
    body = b'{"test": 2432232314}'

    found = headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, [PUBLISHED])

    assert found["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert (found["webhook-id"], found["webhook-timestamp"]) == ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330")


def test_while_a_secret_is_exchanged_both_sign() -> None:
    secrets = [new_secret(), PUBLISHED]

    signatures = headers("1", 1, b"{}", secrets)["webhook-signature"].split(" ")

    keys = [base64.b64decode(secret.removeprefix("whsec_")) for secret in secrets]
    wanted = [base64.b64encode(hmac.new(key, b"1.1.{}", hashlib.sha256).digest()).decode() for key in keys]
    assert signatures == [f"v1,{each}" for each in wanted]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Billing dept"),
        ("url", "ftp://example.com/in"),
        ("url", "https://user:word@example.com/in"),
        ("url", "https://example.com:99999/in"),
        ("url", "https://example..com/in"),
        ("url", "https://[::1/in"),
        ("secrets", ["password"]),
        ("secrets", ["whsec_c2hvcnQ="]),
    ],
)
def test_an_endpoint_that_cannot_be_meant_is_refused(field: str, value: Any) -> None:
    right = {"name": "billing", "url": "https://example.com/in", "secrets": [PUBLISHED]}
    Endpoint.parse(right)

    with pytest.raises(ValueError, match=field):
        Endpoint.parse({**right, field: value})


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1",
     "fd00::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "::",
     "::127.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "64:ff9b:1::1", "2001:0:1::80ff:fffe",
     "fec0::1", "5f00::1", "3fff::1", "2001:db8::1", "2001:2::1", "100::1", "100:0:0:1::1", "4000::1", "ff0e::1",
     "192.88.99.1", "192.0.0.9", "192.0.2.1", "198.18.0.1", "240.0.0.1", "255.255.255.255"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused_unless_their_network_is_named(address: str) -> None:
    assert not permitted(ip_address(address), ())
    assert not permitted(ip_address(address), ("198.51.100.0/24",))


def test_public_addresses_and_named_networks_are_permitted() -> None:
    public = ("93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e", "2002:5db8:d70e::1")
    assert [each for each in public if not permitted(ip_address(each), ())] == []
    assert permitted(ip_address("fec0::1"), ("fec0::/10",))
    assert permitted(ip_address("64:ff9b:1::1"), ("64:ff9b:1::/48",))
    assert permitted(ip_address("10.1.2.3"), ("10.0.0.0/8",))
    assert permitted(ip_address("::ffff:10.1.2.3"), ("10.0.0.0/8",))


async def test_what_is_posted_is_the_body_with_its_signature() -> None:
    async with scripted_server([TAKEN]) as server:
        answer = await poster().post(f"{server.url}/in?x=1", b'{"a":1}', headers("id-1", 5, b'{"a":1}', [PUBLISHED]))

    assert answer.error == ""
    (heard,) = server.heard
    assert heard.startswith("POST /in?x=1 HTTP/1.1")
    assert heard.endswith('{"a":1}')
    assert "webhook-id: id-1" in heard
    assert "content-type: application/cloudevents+json" in heard


@pytest.mark.parametrize(
    ("replies", "error"),
    [
        ([None], "RemoteProtocolError"),
        ([b"not http\r\n\r\n"], "RemoteProtocolError"),
        ([reply(302, "", location="/other")], "it answered 302"),
        ([reply(307, "", location="/loop")], "more than 3 redirections"),
        ([reply(307, "", location="http://169.254.169.254/meta")], "an address that is not public"),
        ([reply(307, "", location="http://[::1]:1/")], "an address that is not public"),
        ([reply(307, "", location="https://127.0.0.1:1/")], "ConnectError"),
        ([reply(307, "", location="file:///etc/passwd")], "file:// is not permitted"),
        ([reply(500, "")], "it answered 500"),
    ],
)
async def test_what_is_not_taken_says_why_and_is_tried_again(replies: list[Reply], error: str) -> None:
    async with scripted_server(replies) as server:
        answer = await poster().post(server.url, b"{}", {})

    assert error in answer.error
    assert answer.retry


@pytest.mark.parametrize(
    "location",
    ["http://[::1", "http://[]/", "http://[[/", "http://127.0.0.1:99999/", "http://127.0.0.1:-1/", "http://127.0.0.1:x/",
     "http://a..b/", "http://.", f"http://{'a' * 70}.com/", f"http://{'a' * 5000}/", "http://xn--a/", "http://xn--/",
     "http://⒈.com/", "http:///", "http://*/", "?" * 70_000, "ht\x01tp://x", "\xff\xfe"],
)  # fmt: skip
async def test_malformed_redirect_is_a_failure_that_is_retried(location: str) -> None:
    async with scripted_server([b"HTTP/1.1 307 X\r\nlocation: " + location.encode() + b"\r\n\r\n"]) as server:
        answer = await poster().post(server.url, b"{}", {})

    assert answer.error
    assert "sub-exception" not in answer.error
    assert answer.retry


@pytest.mark.parametrize(
    "answered",
    [b"\r\n\r\n", b"HTTP/1.1 000 OK\r\n\r\n", b"HTTP/1.1 99999 OK\r\n\r\n", b"HTTP/1.1 101 X\r\nupgrade: x\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: \x00\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1_000_000,
     b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000, b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
     b"HTTP/1.1 200 OK\r\ntransfer-encoding: x\r\n\r\n", b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
)  # fmt: skip
async def test_malformed_answer_is_a_failure_that_is_retried(answered: bytes) -> None:
    async with scripted_server([answered]) as server:
        answer = await poster().post(server.url, b"{}", {})

    assert "ProtocolError" in answer.error
    assert answer.retry


@pytest.mark.parametrize("encoding", ["gzip", "nope", "br"])
async def test_body_of_an_answer_is_never_decoded(encoding: str) -> None:
    lie = f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\n\r\n".encode() + b"\x1f\x8b\x08not gzip" * 10_000
    async with scripted_server([lie]) as server:
        assert (await poster().post(server.url, b"{}", {})).error == ""


@pytest.mark.parametrize(("encrypted", "error"), [(False, "WRONG_VERSION"), (True, "CERTIFICATE_VERIFY_FAILED")])
async def test_tls_failure_is_a_failure_that_is_retried(tmp_path: Path, encrypted: bool, error: str) -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 X\r\n\r\n")
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path))
    async with await asyncio.start_server(refuse, "127.0.0.1", 0, ssl=context if encrypted else None) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await poster().post(f"https://127.0.0.1:{port}", b"{}", {})

    assert error in answer.error
    assert answer.retry


@pytest.mark.parametrize("length", ["99999999999", "0", "3"])
async def test_an_answer_that_lies_about_its_length_counts_by_its_status(length: str) -> None:
    lie = f"HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\nhello".encode()
    async with scripted_server([lie]) as server:
        assert (await poster().post(server.url, b"{}", {})).error == ""


async def test_trusted_certificates_are_read_once_and_not_for_an_endpoint_without_encryption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[object] = []
    load = ssl.SSLContext.load_verify_locations

    def counted(self: ssl.SSLContext, *args: Any, **more: Any) -> None:
        read.append(self)
        load(self, *args, **more)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    sender = poster()
    async with scripted_server([TAKEN, TAKEN]) as server:
        assert [(await sender.post(server.url, b"{}", {})).error for _ in range(2)] == ["", ""]
    assert read == []
    for _ in range(2):
        assert "ConnectError" in (await sender.post("https://127.0.0.1:1/", b"{}", {})).error
    assert len(read) == 1


async def test_one_that_never_answers_is_given_up_in_time() -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        closed.set()

    closed = asyncio.Event()
    silent = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with silent:
        port = silent.sockets[0].getsockname()[1]
        answer = await poster(timeout_seconds=0.1).post(f"http://127.0.0.1:{port}", b"{}", {})
        await closed.wait()

    assert answer.error == "no answer within 0.1 s"


async def test_redirections_that_keep_the_method_are_followed() -> None:
    async with scripted_server([reply(308, "", location="/moved"), TAKEN]) as server:
        answer = await poster().post(server.url, b'{"a":1}', {})

    assert answer.error == ""
    assert [each.split()[1] for each in server.heard] == ["/", "/moved"]
    assert server.heard[1].endswith('{"a":1}')


@pytest.mark.parametrize(
    ("settings", "url", "error"),
    [
        ({"plain_http": False}, "http://127.0.0.1:1/", "http:// is not permitted"),
        ({"private_networks": ()}, "http://127.0.0.1:1/", "an address that is not public"),
        ({"private_networks": ()}, "http://localhost:1/", "an address that is not public"),
        ({"hosts": ("hooks.example.com",)}, "http://127.0.0.1:1/", "not in plugins.webhooks.hosts"),
    ],
)
async def test_what_may_not_be_posted_to_is_never_connected_to(settings: dict[str, Any], url: str, error: str) -> None:
    assert error in (await poster(**settings).post(url, b"{}", {})).error


async def test_a_body_beyond_the_limit_is_never_posted_nor_tried_again() -> None:
    answer = await poster(payload_limit_bytes=1024).post("http://127.0.0.1:1/", b"x" * 1025, {})

    assert "larger than payload_limit_bytes (1024)" in answer.error
    assert not answer.retry


async def test_an_endpoint_says_when_to_come_again_and_that_it_is_gone() -> None:
    async with scripted_server([reply(429, "", retry_after="120"), reply(410, "")]) as server:
        first, second = [await poster().post(server.url, b"{}", {}) for _ in range(2)]

    assert (first.after, first.gone) == (120.0, False)
    assert second.gone
