"""PgBouncer in front of a test's database: installed like the brokers, one for one test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.support.servers.brokers import Kind, Launch, private_server

SSL_REQUEST, NO_SSL = b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"N"


def _launch(upstream: str, mode: str, program: str, port: int, folder: Path) -> Launch:
    parts = conninfo_to_dict(upstream)
    server = " ".join(f"{key}={parts[key]}" for key in ("host", "port", "user", "password") if key in parts)
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = {server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = any\npool_mode = {mode}\ndefault_pool_size = 20\n"
    )
    # it refuses to run as root; the effective user stays, so that it reaches the server's socket
    prefix = ["setpriv", "--ruid", "nobody"] if os.geteuid() == 0 else []
    return [*prefix, program, str(folder / "pgbouncer.ini")], {}


@contextmanager
def transaction_pooler(database_url: str, mode: str = "transaction") -> Iterator[str]:
    """The URL of the same database through a pooler that lends a session for each transaction only.

    In the mode `session` it lends one for as long as its client stays.
    """
    kind = Kind(
        "PgBouncer",
        "TASKER_TEST_PGBOUNCER",
        6432,
        "pgbouncer",
        "postgresql://postgres@127.0.0.1:{port}/" + str(conninfo_to_dict(database_url)["dbname"]),
        SSL_REQUEST,
        NO_SSL,
        partial(_launch, database_url, mode),
    )
    with private_server(kind) as server:
        yield server.url
