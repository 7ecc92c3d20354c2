"""Files and commands for the tests of the configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tasker.cli.main import cli

HANDLERS = "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers"

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to(name: str, text: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return to


@pytest.fixture
def sources(write: Write, tmp_path: Path) -> Path:
    """A small `base` and `environments`."""
    write("c/base/common.toml", "[common.database.pool]\nmax_connections = 30\nmin_connections = 8\n")
    write(
        "c/base/orchestration.toml",
        "[orchestration.decision_points]\nmax_depth = 11\n"
        '[orchestration.event_systems.orchestration]\ndeployment_mode = "PollingOnly"\n',
    )
    write("c/base/worker.toml", '[worker]\nworker_id = "${KIND:-general}"\n')
    write(
        "c/environments/production/common.toml",
        '[common.database]\nurl = "${DATABASE_URL}"\npool.max_connections = 50\n',
    )
    write("c/environments/development/worker.toml", f"[{HANDLERS.rpartition('.')[0]}]\nmax_concurrent_handlers = 3\n")
    return tmp_path / "c"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """`tasker config ...` in an empty folder, with only the given variables."""
    for name in [name for name in os.environ if name.startswith(("TASKER_", "DATABASE_URL"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object, **environ: str) -> Result:
        return CliRunner().invoke(cli, ["config", *map(str, arguments)], env=environ)

    return call
