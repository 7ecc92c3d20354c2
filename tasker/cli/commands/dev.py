"""`tasker dev`: a worker, and optionally a server, restarted when a template or a handler changes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import click

from tasker.cli.commands.process_options import LOG_FORMAT, no_config_option
from tasker.cli.commands.worker_children import KILL_SECONDS, RESTART_SECONDS, TASKER, start_child, wait_for_end
from tasker.cli.connection import configured_for
from tasker.cli.options import CONCURRENCY, DatabaseOption, database_options
from tasker.cli.suggestions import WorkflowPath
from tasker.logging.levels import levels_named
from tasker.settings.execution import TaskTemplates

SUFFIXES = (".yaml", ".yml", ".py", ".json", ".toml")
INSTALLED = {"node_modules", "venv", "__pycache__"}
"""Folders that are not watched, besides hidden ones such as `.venv` and `.git`."""

CONFIG_VARIABLES = ("TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT")

CONCURRENT = 100
CHECK_SECONDS = 0.5
GRACE_SECONDS = 3.0


@click.command()
@click.argument("workflows", nargs=-1, type=WorkflowPath(), metavar="[WORKFLOW]...")
@click.option("--handlers", multiple=True, metavar="MODULE_OR_FOLDER", help="Module or file with handlers; repeatable.")
@click.option(
    "--concurrency", type=CONCURRENCY, help="Maximum number of concurrent steps (default: as configured, else 100)."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port on which to serve the HTTP API too, like `tasker server`."
)
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
    """Serve these workflows, else those below config/tasks, and restart whenever one of their files changes.

    Running tasks keep the template they were submitted with; steps that run during a restart are released without using
    an attempt. Submit from another terminal with `tasker run NAMESPACE/NAME`, from your program, or with --port over
    HTTP.

    The configuration file named by TASKER_CONFIG_PATH or TASKER_CONFIG_ROOT applies as it does for `tasker worker`.

    \b
    Example:
      tasker dev workflows/order_fulfillment --port 8080
    """
    levels_named()  # an invalid level would otherwise fail at each restart of the worker
    files = [] if no_config else [Path(os.environ[name]) for name in CONFIG_VARIABLES if os.environ.get(name)]
    if files:
        configured_for(database)  # an invalid file is refused here instead of at each restart
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
    """Run a server beside the worker, which is not restarted with it; without a port there is none."""
    if port is None:
        yield
        return
    from tasker.cli.commands.server import require_libraries

    require_libraries()
    from tasker.server.sockets import LOOPBACK, listen

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
    """Return the folders of the templates that a worker finds by default."""
    from tasker.services.workflows.template_search import search

    folders = sorted({file.parent for file in search(TaskTemplates.search_paths)})
    if not folders:
        raise click.UsageError(
            f"no workflow found; give one, or create it at {' or '.join(TaskTemplates.search_paths)}"
        )
    return folders


class _Child:
    def __init__(self, command: list[str], database_url: str | None = None) -> None:
        self._command, self._database_url = command, database_url
        self._process = start_child(command, database_url)
        self._told: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """Stop the worker gracefully. It gets one signal only, even if Ctrl-C arrives during a restart."""
        if self._told is not self._process:
            self._told = self._process
            self._process.send_signal(signal.SIGTERM)
        wait_for_end(self._process, time.monotonic() + GRACE_SECONDS + KILL_SECONDS)
        if self._process.stdin:
            self._process.stdin.close()

    def was_killed(self) -> bool:
        """Return whether the worker was ended by a signal from elsewhere; then a file change would not restart it."""
        return (self._process.poll() or 0) < 0 and self._told is not self._process

    def has_given_up(self) -> bool:
        """Return True once for a worker that exited on its own, e.g. for an error in a file: a change restarts it."""
        if (self._process.poll() or 0) <= 0 or self._told is self._process:
            return False
        self._told = self._process
        return True

    def restart(self) -> None:
        self.stop()
        self._process = start_child(self._command, self._database_url)


def _watch(watched: Sequence[Path], child: _Child) -> None:
    seen = _stamps(watched)
    while True:
        time.sleep(CHECK_SECONDS)
        now = _stamps(watched)
        if now != seen:
            changed = sorted(path.name for path in now.keys() | seen.keys() if now.get(path) != seen.get(path))
            seen = now
            click.echo(f"changed: {', '.join(changed[:5])}; restarting", err=True)
            child.restart()
        elif child.has_given_up():
            click.echo("the worker has stopped; it restarts when a file changes", err=True)
        elif child.was_killed():
            click.echo("the worker was killed; restarting it", err=True)
            time.sleep(RESTART_SECONDS)
            child.restart()


def _stamps(watched: Sequence[Path]) -> dict[Path, int]:
    """Return the modification time of each file."""
    mtimes: dict[Path, int] = {}
    for file in (file for path in watched for file in _files(path)):
        with suppress(FileNotFoundError):  # an editor is replacing the file
            mtimes[file] = file.stat().st_mtime_ns
    return mtimes


def _files(path: Path) -> Iterator[Path]:
    """Yield the files that may change a workflow, without installed packages, which are many."""
    if path.is_file():
        yield path
    for folder, inner, names in os.walk(path):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in INSTALLED]
        yield from (Path(folder, name) for name in names if name.endswith(SUFFIXES))
