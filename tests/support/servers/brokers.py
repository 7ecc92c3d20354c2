"""Message brokers for tests: one that is there, else one of our own; and private ones that a test may kill.

Looked for in this order: the URL in the environment, a server on the default local port, a server program that is
started privately on a free port and stopped at the end, on Debian as root an installation of the package. Without any
of them the tests are skipped (the end of the run says so in one line); with CI=true they fail.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import pytest

from tasker.messaging import MessagingService, installed_backends

START_SECONDS = 120
Launch = tuple[Sequence[str], Mapping[str, str]]
"""A command, and what is added to its environment."""


@dataclass(frozen=True)
class Kind:
    """A kind of server. It is ready when it answers `hello` with something that holds `reply`."""

    name: str
    variable: str
    default_port: int
    package: str
    scheme: str
    hello: bytes
    reply: bytes
    launch: Callable[[str, int, Path], Launch]

    def url(self, port: int) -> str:
        """The URL of a server on this machine."""
        return self.scheme.format(port=port)

    def program(self) -> str | None:
        """The server program, if it is installed."""
        # Debian's program of this name drops the environment and leaves for another user; the real one is behind it
        behind = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
        if self.package == behind.name and behind.exists():
            return str(behind)
        return shutil.which(self.package) or shutil.which(self.package, path="/usr/sbin:/usr/local/sbin")

    def answers(self, port: int) -> bool:
        """True when a ready server of this kind listens there."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(self.hello)
            seen = b""
            while piece := connection.recv(4096):
                seen += piece
                if self.reply in seen:
                    return True
        return False


def _launch_rabbitmq(program: str, port: int, folder: Path) -> Launch:
    (folder / "enabled_plugins").write_text("[].")
    (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    (folder / "env.conf").write_text("")
    return [program], {
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_FLAGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_NODENAME": f"tasker_test_{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "env.conf"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }


def _launch_redis(program: str, port: int, folder: Path) -> Launch:
    options = {"--port": str(port), "--bind": "127.0.0.1", "--dir": str(folder), "--appendonly": "yes", "--save": ""}
    return [program, *(word for option in options.items() for word in option)], {}


def _launch_nats(program: str, port: int, folder: Path) -> Launch:
    return [program, "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", str(folder / "data")], {}


RABBITMQ = Kind(
    "RabbitMQ",
    "TASKER_TEST_RABBITMQ_URL",
    5672,
    "rabbitmq-server",
    "amqp://guest:guest@127.0.0.1:{port}/%2F",
    b"AMQP\x00\x00\x09\x01",
    b"RabbitMQ",
    _launch_rabbitmq,
)
REDIS = Kind(
    "Redis",
    "TASKER_TEST_REDIS_URL",
    6379,
    "redis-server",
    "redis://127.0.0.1:{port}/0",
    b"PING\r\n",
    b"+PONG",
    _launch_redis,
)
NATS = Kind(
    "NATS with JetStream",
    "TASKER_TEST_NATS_URL",
    4222,
    "nats-server",
    "nats://127.0.0.1:{port}",
    b"",
    b'"jetstream":true',
    _launch_nats,
)
KINDS = (RABBITMQ, REDIS, NATS)


WATCH = """
import os, shutil, signal, sys
if not sys.stdin.read():
    os.killpg(int(sys.argv[1]), signal.SIGKILL)
    shutil.rmtree(sys.argv[2], ignore_errors=True)
"""
"""What waits beside a server: when the tests end without a word, however that happens, it ends the server too."""


class PrivateServer:
    """A server of our own, which a test may kill and start again; its data stay until `remove`."""

    def __init__(self, kind: Kind, program: str) -> None:
        self._kind, self._program = kind, program
        self._folder = Path(tempfile.mkdtemp(prefix="tasker-broker-"))
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self.url = kind.url(self._port)

    @property
    def pid(self) -> int:
        """Its process; 0 while it does not run."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start it and return when it answers."""
        command, environment = self._command()
        with (self._folder / "output.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env=environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        watch = [sys.executable, "-I", "-S", "-c", WATCH, str(self._process.pid), str(self._folder)]
        self._watcher = subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True, cwd="/")
        deadline = time.monotonic() + START_SECONDS
        while not self._kind.answers(self._port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                output = (self._folder / "output.log").read_text(errors="replace")[-2000:]
                self.kill()
                raise RuntimeError(f"a private {self._kind.name} did not start:\n{output}")
            time.sleep(0.05)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, extra = self._kind.launch(self._program, self._port, self._folder)
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RABBITMQ_", "ERL_"))}
        return command, {**inherited, **extra}

    def evaluate(self, expression: str) -> None:
        """Have RabbitMQ evaluate an Erlang expression."""
        (program, *_), environment = self._command()
        command = [str(Path(program).with_name("rabbitmqctl")), "--node", environment["RABBITMQ_NODENAME"]]
        subprocess.run([*command, "eval", expression], env=environment, capture_output=True, check=True)

    def kill(self) -> None:
        """End it at once, as a crash would. Nothing happens when it does not run."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.communicate(b"it is seen to")
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def restart(self) -> None:
        """Kill it and start it again, with its data."""
        self.kill()
        self.start()

    def remove(self) -> None:
        """Kill it and delete its data. May be called twice."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def private_server(kind: Kind) -> Iterator[PrivateServer]:
    """A running server of our own, removed at the end; skips the test when there is no program to run."""
    program = kind.program() or _installed(kind)
    if program is None:
        give_up(kind)
    server = PrivateServer(kind, program)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def shared_url(kind: Kind) -> str:
    """The URL of a server that all tests may use and none may kill; skips the test when there is none."""
    return _found(kind) or give_up(kind)


@cache
def _found(kind: Kind) -> str | None:
    if declared := os.environ.get(kind.variable):
        return declared
    if kind.answers(kind.default_port):
        return kind.url(kind.default_port)
    program = kind.program() or _installed(kind)
    if program is None:
        return None
    server = PrivateServer(kind, program)
    atexit.register(server.remove)
    server.start()
    return server.url


def _installed(kind: Kind) -> str | None:
    if not _can_install():
        return None
    command = ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", kind.package]
    subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False)
    return kind.program()


def _can_install() -> bool:
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def absent() -> list[str]:
    """One line for each kind that cannot be had here."""
    return [_absence(kind) for kind in KINDS if not _within_reach(kind)]


def _within_reach(kind: Kind) -> bool:
    return bool(os.environ.get(kind.variable) or kind.program() or kind.answers(kind.default_port) or _can_install())


def _absence(kind: Kind) -> str:
    return (
        f"NOT TESTED on {kind.name}: none on 127.0.0.1:{kind.default_port}, no program {kind.package}, "
        f"and {kind.variable} is not set"
    )


def give_up(kind: Kind) -> NoReturn:
    """Skip the running test, or fail it where everything must be there (CI=true)."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(_absence(kind))
    pytest.skip(_absence(kind))


def free_port() -> int:
    """A port of the loopback interface that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


ENGINE_BACKENDS = [name for name in ("pgmq", "memory", "rabbitmq", "redis", "nats") if name in installed_backends()]
"""The backends on which the engine's own tests run."""
KIND_OF = {"rabbitmq": RABBITMQ, "redis": REDIS, "nats": NATS}


def on(backend: str) -> Any:
    """A backend as a parameter. `make test-servers` has those that need a server beside the database."""
    return pytest.param(backend, marks=pytest.mark.servers if backend in KIND_OF else ())


def engine_settings(backend: str) -> dict[str, Any]:
    """Settings for one engine: what it sends stays apart from all others on the server. Skips without a server."""
    kind = KIND_OF.get(backend)
    return {} if kind is None else {"url": shared_url(kind), "prefix": f"tasker_test_{uuid4().hex[:12]}_"}


async def remove_queues(messaging: MessagingService, settings: Mapping[str, Any]) -> None:
    """Leave nothing on a shared server: the queues that the engine has made, and RabbitMQ's dead letters."""
    for queue in await messaging.list_queues():
        await messaging.delete_queue(queue)
    if messaging.provider_name() == "rabbitmq":
        import aio_pika

        async with await aio_pika.connect(settings["url"]) as connection:
            channel = await connection.channel()
            await channel.queue_delete(f"{settings['prefix']}dead.letters")
            await channel.exchange_delete(f"{settings['prefix']}dead.letters")
