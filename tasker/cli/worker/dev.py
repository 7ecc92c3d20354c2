"""`tasker dev`: everything in one place, started again when a template or a handler changes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import click

from tasker.cli.connection import configured_for
from tasker.cli.guessing import WorkflowPath
from tasker.cli.options import CONCURRENCY, DatabaseOption, database_options
from tasker.cli.worker.children import KILL_SECONDS, RESTART_SECONDS, TASKER, start_child, wait_for_end
from tasker.cli.worker.options import LOG_FORMAT, no_config_option
from tasker.contracts.defaults import SEARCH_PATHS
from tasker.log_levels import levels_named

SUFFIXES = (".yaml", ".yml", ".py", ".json", ".toml")
INSTALLED = {"node_modules", "venv", "__pycache__"}
"""Folders that are not looked into, beside hidden ones such as `.venv` and `.git`."""

CONFIG_VARIABLES = ("TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT")

CONCURRENT = 100
LOOK_SECONDS = 0.5
GRACE_SECONDS = 3.0


@click.command()
@click.argument("workflows", nargs=-1, type=WorkflowPath(), metavar="[WORKFLOW]...")
@click.option("--handlers", multiple=True, metavar="MODULE_OR_FOLDER", help="Handlers to load; repeatable.")
@click.option(
    "--concurrency", type=CONCURRENCY, help="Steps that run at the same time (default: as configured, else 100)."
)
@click.option("--port", type=click.IntRange(0, 65535), help="Also answer HTTP there, as `tasker server` does.")
@LOG_FORMAT
@no_config_option
@database_options
def dev(
    workflows: tuple[Path, ...],
    handlers: tuple[str, ...],
    concurrency: int | None,
    port: int | None,
    no_config: bool,
    database: DatabaseOption,
) -> None:
    """Serve these workflows, else those below config/tasks, and start again whenever one of their files changes.

    Tasks in flight keep the template they were submitted with; steps that run during a restart are given back without
    using an attempt. Submit from another terminal with `tasker run NAMESPACE/NAME`, from your program, or with --port
    over HTTP.

    The configuration file that TASKER_CONFIG_PATH or TASKER_CONFIG_ROOT names counts as it does for `tasker worker`.

    \b
    Example:
      tasker dev workflows/order_fulfillment --port 8080
    """
    levels_named()  # a worker that refuses it would be started again with each change
    files = [] if no_config else [Path(os.environ[name]) for name in CONFIG_VARIABLES if os.environ.get(name)]
    if files:
        configured_for(database)  # a file that a worker would refuse is refused here
    watched = [*(workflows or _found()), *(Path(source) for source in handlers if Path(source).exists()), *files]
    command = [*TASKER, "worker", *map(str, workflows), "--force", "--shutdown-timeout", str(GRACE_SECONDS)]
    if concurrency is not None or not files:
        command += ["--concurrency", str(concurrency or CONCURRENT)]
    command += [part for source in handlers for part in ("--handlers", source)]
    command += (where := [*_database_arguments(database, files), *([] if files else ["--no-config"])])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _answering(port, where, database.url):
        child = _Child(command, database.url)
        try:
            _watch(watched, child)
        except KeyboardInterrupt:
            child.stop()


def _database_arguments(database: DatabaseOption, files: Sequence[Path]) -> list[str]:
    folder = ["--data-dir", str(database.data_dir)] if database.data_dir else []
    return [*(["--backend", database.backend] if database.backend_given or not files else []), *folder]


@contextmanager
def _answering(port: int | None, where: Sequence[str], database_url: str | None) -> Iterator[None]:
    """A server beside the worker, which goes on while that is started again; none without a port."""
    if port is None:
        yield
        return
    from tasker.cli.server import require_libraries

    require_libraries()
    from tasker.api.sockets import LOOPBACK, listen

    with closing(listen(LOOPBACK, port)) as socket:
        number = socket.fileno()
        command = [*TASKER, "server", "--socket", str(number), *where]
        child = start_child([*command, "--shutdown-timeout", str(GRACE_SECONDS)], database_url, [number])
    try:
        yield
    finally:
        child.send_signal(signal.SIGTERM)
        wait_for_end(child, time.monotonic() + GRACE_SECONDS + KILL_SECONDS)


def _found() -> list[Path]:
    """The folders of the templates that a worker finds by itself."""
    from tasker.services.authoring.template_search import search

    folders = sorted({file.parent for file in search(SEARCH_PATHS)})
    if not folders:
        raise click.UsageError(f"name a workflow: none is found at {' or '.join(SEARCH_PATHS)}")
    return folders


class _Child:
    """The worker's process."""

    def __init__(self, command: list[str], database_url: str | None = None) -> None:
        self._command, self._database_url = command, database_url
        self._process = start_child(command, database_url)
        self._told: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """End it gracefully. It is told once, though Ctrl-C may come while it is being restarted."""
        if self._told is not self._process:
            self._told = self._process
            self._process.send_signal(signal.SIGTERM)
        wait_for_end(self._process, time.monotonic() + GRACE_SECONDS + KILL_SECONDS)
        if self._process.stdin:
            self._process.stdin.close()

    def was_killed(self) -> bool:
        """True when it ended by a signal that it did not get from here: no change of a file will bring it back."""
        return (self._process.poll() or 0) < 0 and self._told is not self._process

    def has_given_up(self) -> bool:
        """True once for a process that ended by itself, as with a mistake in a file: a change brings another one."""
        if (self._process.poll() or 0) <= 0 or self._told is self._process:
            return False
        self._told = self._process
        return True

    def restart(self) -> None:
        """Another one."""
        self.stop()
        self._process = start_child(self._command, self._database_url)


def _watch(watched: Sequence[Path], child: _Child) -> None:
    seen = _stamps(watched)
    while True:
        time.sleep(LOOK_SECONDS)
        now = _stamps(watched)
        if now != seen:
            changed = sorted(path.name for path in now.keys() | seen.keys() if now.get(path) != seen.get(path))
            seen = now
            click.echo(f"changed: {', '.join(changed[:5])}; starting again", err=True)
            child.restart()
        elif child.has_given_up():
            click.echo("the worker has ended; it starts again when a file changes", err=True)
        elif child.was_killed():
            click.echo("the worker was killed; starting another", err=True)
            time.sleep(RESTART_SECONDS)
            child.restart()


def _stamps(watched: Sequence[Path]) -> dict[Path, int]:
    """The time of each file's last change."""
    found: dict[Path, int] = {}
    for file in (file for path in watched for file in _files(path)):
        with suppress(FileNotFoundError):  # an editor puts another one in its place
            found[file] = file.stat().st_mtime_ns
    return found


def _files(path: Path) -> Iterator[Path]:
    """What may change a workflow; not what is installed below it, which is large."""
    if path.is_file():
        yield path
    for folder, inner, names in os.walk(path):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in INSTALLED]
        yield from (Path(folder, name) for name in names if name.endswith(SUFFIXES))
