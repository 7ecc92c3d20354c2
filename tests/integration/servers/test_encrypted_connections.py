"""Connections to brokers and to the database are encrypted by their URL, to a server whose certificate is trusted."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasker.db.connection import Connection
from tasker.errors import BackendUnavailable, DatabaseError, MessagingError
from tasker.messaging import MessagingService
from tasker.messaging.backends import load_backend
from tests.integration.api.test_options import self_signed
from tests.support.servers import brokers
from tests.support.servers.second_server import THROWN_AWAY, programs
from tests.support.waiting import until

pytestmark = pytest.mark.servers


@contextmanager
def encrypted(name: str, folder: Path) -> Iterator[tuple[str, str]]:
    """A broker that speaks TLS: its URL without a certificate to trust, and with one."""
    certificate, key = self_signed(folder)
    port, kind = brokers.free_port(), brokers.KIND_OF[name]

    def launch(program: str, plain: int, own: Path) -> brokers.Launch:
        command, extra = kind.launch(program, plain, own)
        if name == "rabbitmq":
            files = {"certfile": certificate, "keyfile": key, "cacertfile": certificate, "verify": "verify_none"}
            lines = [f"ssl_options.{option} = {value}\n" for option, value in files.items()]
            with (own / "rabbitmq.conf").open("a") as conf:
                conf.writelines([f"listeners.ssl.1 = 127.0.0.1:{port}\n", *lines])
            return command, extra
        if name == "redis":
            files = {"--tls-cert-file": certificate, "--tls-key-file": key, "--tls-ca-cert-file": certificate}
            more = {"--tls-port": str(port), "--tls-auth-clients": "no", **files}
            return [*command, *(word for option in more.items() for word in option)], extra
        return [*command, "--tls", "--tlscert", certificate, "--tlskey", key], extra

    with brokers.private_server(replace(kind, launch=launch)) as server:
        if name == "nats":  # which says hello before it encrypts
            url = server.url.replace("nats://", "tls://")
            yield url, f"{url}?cafile={certificate}"
        elif name == "redis":
            url = f"rediss://127.0.0.1:{port}/0"
            yield url, f"{url}?ssl_ca_certs={certificate}"
        else:
            url = f"amqps://guest:guest@127.0.0.1:{port}/%2F"
            yield url, f"{url}?cafile={certificate}"


async def sent_and_received(name: str, url: str) -> list[Any]:
    settings: Mapping[str, Any] = {"url": url, "prefix": "tasker_encrypted_"}
    messaging = MessagingService(load_backend(name, settings))
    await messaging.open()
    try:
        await messaging.create_queue("tasker_letters")
        await messaging.send_message("tasker_letters", b'{"hello": 1}')
        return [each.payload for each in await messaging.receive_messages("tasker_letters", 10, 30)]
    finally:
        await messaging.close()


@pytest.mark.parametrize("name", ["rabbitmq", "redis", "nats"])
async def test_a_broker_is_reached_by_tls_where_its_certificate_is_trusted(name: str, tmp_path: Path) -> None:
    with encrypted(name, tmp_path) as (strange, trusted):
        with pytest.raises((BackendUnavailable, MessagingError)):
            await sent_and_received(name, strange)
        assert await sent_and_received(name, trusted) == [b'{"hello": 1}']


@contextmanager
def encrypted_postgres(binaries: Path) -> Iterator[tuple[int, str]]:
    """A server that takes encrypted connections alone: its port, and its certificate."""
    with tempfile.TemporaryDirectory(prefix="tasker-tls-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        certificate, key = self_signed(folder)
        Path(key).chmod(0o600)
        account: dict[str, Any] = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            for path in (folder, Path(certificate), Path(key)):
                os.chown(path, entry.pw_uid, entry.pw_gid)
        data, port = folder / "data", brokers.free_port()
        make = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust", "-E", "UTF8", "-N"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, cwd="/", **account)
        (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n")
        tls = {"ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key}
        own = {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": str(folder)}
        settings = [f"--{name}={value}" for name, value in {**THROWN_AWAY, **tls, **own}.items()]
        command = [str(binaries / "postgres"), "-D", str(data), *settings]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd="/", **account)
        try:
            started = data / "postmaster.pid"
            until(lambda: started.exists() and started.read_text().strip().endswith("ready"), "PostgreSQL answers")
            yield port, certificate
        finally:
            server.terminate()
            server.wait(30)


async def test_the_database_is_reached_by_tls_where_its_certificate_is_trusted() -> None:
    binaries = programs()
    if binaries is None:
        pytest.skip("the system has no PostgreSQL, and the embedded one speaks no TLS")
    with encrypted_postgres(binaries) as (port, certificate):
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        for refused in (f"{url}?sslmode=disable", f"{url}?sslmode=verify-full"):
            with pytest.raises(DatabaseError):
                await Connection(refused, name="test").execute("select 1")
        connection = Connection(f"{url}?sslmode=verify-full&sslrootcert={certificate}", name="test")
        try:
            found = await connection.execute("select ssl, version from pg_stat_ssl where pid = pg_backend_pid()")
        finally:
            await connection.close()
    assert [tuple(row) for row in found] == [(True, "TLSv1.3")]
