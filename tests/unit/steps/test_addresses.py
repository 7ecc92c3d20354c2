"""No step that makes requests reaches an address that is not public, however it is written."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tasker.errors import ConfigurationError, TaskerError
from tasker.handlers.http.step import HttpRequest
from tasker.resources.http import make_http
from tasker.testing.contexts import step_context
from tasker_steps.llm import AskModel, make_llm
from tasker_steps.notify import Notify, make_notify

HOSTS = [
    "127.0.0.1", "127.1", "127.0.0.53", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "localhost", "0.0.0.0", "0",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "10.0.0.5", "10.255.255.255", "172.16.0.1", "172.31.255.254",
    "192.168.1.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "100.64.0.1",
    "169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "169.254.170.2", "100.100.100.200",
    "[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "224.0.0.1", "255.255.255.255", "[ff02::1]", "[2001:db8::1]",
]  # fmt: skip
PORT = 9


def http(host: str) -> tuple[Any, Any, dict[str, Any]]:
    return HttpRequest(), make_http({"base_url": f"http://{host}:{PORT}"}), {"path": "/"}


def llm(host: str) -> tuple[Any, Any, dict[str, Any]]:
    return AskModel(), make_llm({"base_url": f"http://{host}:{PORT}", "model": "m"}), {"prompt": "x"}


def notify(host: str) -> tuple[Any, Any, dict[str, Any]]:
    return Notify(), make_notify({"url": f"json://{host}:{PORT}/hook"}), {"text": "x"}


def called(make: Callable[[str], Any], host: str) -> None:
    handler, resource, inputs = make(host)
    handler.call(step_context({"resource": "r", **inputs}, resources={"r": resource}))


STEPS = [http, llm, notify]


@pytest.mark.parametrize("make", STEPS, ids=lambda step: step.__name__)
def test_forty_addresses_are_refused(make: Callable[[str], Any]) -> None:
    assert len(HOSTS) > 40
    refusals = 0
    for host in HOSTS:
        with pytest.raises(TaskerError) as refused:
            called(make, host)
        code = refused.value.error_code
        assert code == "address_refused" or isinstance(refused.value, ConfigurationError), (host, refused.value)
        refusals += code == "address_refused"
    assert refusals >= 35  # the rest are no URLs for the library


@pytest.mark.parametrize("make", STEPS, ids=lambda step: step.__name__)
def test_name_with_a_private_address_is_refused(make: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return real("10.0.0.7" if name == "inner.example.com" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(TaskerError, match=r"10\.0\.0\.7"):
        called(make, "inner.example.com")


def test_other_threads_connect_as_before() -> None:
    from tasker.outgoing import AddressRefused, guarded_thread

    listening = socket.create_server(("127.0.0.1", 0))
    reached: list[str] = []

    def other() -> None:
        with socket.create_connection(listening.getsockname()):
            reached.append("other")

    with guarded_thread() as refused:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with pytest.raises(AddressRefused):
            socket.create_connection(listening.getsockname())
        with socket.socket(socket.AF_UNIX) as unix, pytest.raises(AddressRefused):
            unix.connect("/tmp/no-such-socket")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram, pytest.raises(AddressRefused):
            datagram.sendto(b"x", listening.getsockname())
    assert (reached, len(refused)) == (["other"], 3)
    with socket.create_connection(listening.getsockname()), listening:
        pass
