"""`tasker server`: HTTP server process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from socket import socket as Socket

import click

from tasker.cli.commands.process_options import LOG_FORMAT, log_as_configured, log_to_stderr, no_config_option
from tasker.cli.commands.worker_children import TASKER, TIED, end_with_parent, start_child, supervise, without
from tasker.cli.connection import configured_for
from tasker.cli.loading import pause_gc
from tasker.cli.options import STOP_SECONDS, DatabaseOption, database_options
from tasker.errors import UsageError
from tasker.installed import install_command

LIBRARIES = ("cryptography", "fastapi", "httptools", "jwt", "uvicorn")
"""Libraries that the extra `api` installs."""
SOCKET = "--socket"
"""Option of a child process: descriptor of the listening socket that it inherits."""
HANDLED_HERE = ("--workers", "--database-url", "--host", "--port")
"""Options that are not passed to the children of `--workers`."""


def require_libraries(use: str = "answering HTTP", libraries: Sequence[str] = LIBRARIES) -> None:
    """Raise `UsageError` if the extra `api` is not installed."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        raise UsageError(
            f"{use} needs {', '.join(missing)}, which is not installed",
            hint=install_command("api"),
        )


@click.command()
@click.option(
    "--host", metavar="ADDRESS", help="Address to listen on (default: orchestration.web.bind_address, 127.0.0.1)."
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (default: 8080); 0 picks a free one.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of server processes; one that dies is restarted.",
)
@click.option(
    "--shutdown-timeout",
    type=STOP_SECONDS,
    metavar="SECONDS",
    help="Maximum time for a graceful shutdown (default: orchestration.shutdown_timeout_ms, 30 seconds).",
)
@click.option(TIED, "tied", is_flag=True, hidden=True)
@click.option(SOCKET, "inherited", type=int, hidden=True)
@LOG_FORMAT
@no_config_option
@database_options
def server(
    host: str | None,
    port: int | None,
    workers: int,
    shutdown_timeout: float | None,
    tied: bool,
    inherited: int | None,
    no_config: bool,
    database: DatabaseOption,
) -> None:
    """Serve the HTTP API until stopped: create, watch and control tasks; see docs/rest-api.md.

    The server runs no steps: start workers beside it. Without authentication it listens on this machine only;
    docs/security.md explains how to enable authentication.

    SIGHUP reloads its keys and its certificate; SIGUSR1 logs one line about its state. It stops gracefully on SIGTERM
    or Ctrl-C: it accepts no new connection, and completes requests in progress.

    \b
    Example:
      tasker server --port 8080
      curl localhost:8080/health
    """
    require_libraries()
    with pause_gc():
        from tasker.app.http_serving import HttpService, authenticator_of, listening_socket, serve_http, tls_of
        from tasker.app.serving import Service

    if tied and (url := end_with_parent()):
        database = replace(database, url=url, url_given=True)
    log_to_stderr()
    log_as_configured(chosen := configured_for(database, no_config=no_config))
    read = partial(configured_for, database, no_config=no_config)
    service = Service(configuration=chosen, data_dir=database.data_dir, shutdown_seconds=shutdown_timeout, reread=read)
    service.hangups.listen()
    service.status.listen()
    authenticator, tls = authenticator_of(chosen.http.auth), tls_of(chosen.http)
    socket = listening_socket(chosen.http, host, port, inherited)
    if workers > 1:
        url = database.url if database.url_given else None
        raise SystemExit(_side_by_side(socket, workers, url, service.stop_limit))
    asyncio.run(serve_http(HttpService(service, socket, authenticator, tls), lambda line: click.echo(line, err=True)))


def _side_by_side(socket: Socket, workers: int, database_url: str | None, stop_limit: float) -> int:
    """Run processes that accept connections from one socket, which stays open until they are stopped."""
    command = [*TASKER, *without(sys.argv[1:], HANDLED_HERE), SOCKET, str(socket.fileno())]
    start = partial(start_child, command, database_url, [socket.fileno()])
    return supervise(start, workers, stop_limit, "server", on_stop=socket.close)
