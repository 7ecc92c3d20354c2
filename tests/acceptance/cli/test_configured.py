"""Commands that look at and mend tasks use the database and the backend of the configuration file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke, run_json
from tests.support.servers.providers import Providers

if TYPE_CHECKING:
    from tests.support.servers.databases import Server

LINEAR = WORKFLOWS / "linear_math"
STEP = "mathematical_divide"

Configure = Callable[[str], None]


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Writes the file that TASKER_CONFIG_PATH names, in an empty folder and without any other variable."""
    file = tmp_path / "merged.toml"
    for name in ("DATABASE_URL", "TASKER_MESSAGING_BACKEND", "TASKER_CONFIG_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(file))
    monkeypatch.chdir(tmp_path)

    def write(url: str) -> None:
        file.write_text(f'[common.database]\nurl = "{url}"\n')

    return write


@pytest.fixture(scope="module")
def prepared(server: Server, migrated_template: str) -> Iterator[tuple[str, str]]:
    """The name of a database to copy, and a task in it of which a step failed."""
    with server.database(migrated_template) as url:
        task = run_json(LINEAR, "--set", "divisor=0", database=url)["task_uuid"]
        yield urlsplit(url).path[1:], str(task)


@pytest.fixture
def failed(prepared: tuple[str, str]) -> str:
    """A task of which a step failed, in the database of each test."""
    return prepared[1]


@pytest.fixture
def database_url(server: Server, prepared: tuple[str, str]) -> Iterator[str]:
    with server.database(prepared[0]) as url:
        yield url


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("task list", "{task}"),
        ("task show {task}", "template  linear/linear_workflow:1.0.0"),
        ("task history {task}", STEP),
        ("task refused", "no refused messages"),
        ("task step reset {task} " + STEP, "to resume it: tasker run --resume {task}"),
        ("task step resolve {task} " + STEP, "done, the task is"),
        ("worker list --all", "worker"),
        ("pause linear", "paused linear"),
        ("pause list", "no pauses"),
        ("resume linear", "linear was not paused"),
        ("template list", "linear/linear_workflow:1.0.0"),
        ("template register {path}", "registered linear/linear_workflow:1.0.0"),
        ("broker status", "pgmq answers"),
        ("db status", "current"),
        ("db upgrade", "already up to date"),
    ],
)
def test_a_command_uses_the_database_of_the_file(
    command: str, told: str, failed: str, database_url: str, configure: Configure, tmp_path: Path
) -> None:
    configure(database_url)
    done = invoke(*(word.format(task=failed, path=LINEAR) for word in command.split(" ")))
    assert done.exit_code == 0, done.output
    assert told.format(task=failed) in done.output
    assert not (tmp_path / ".tasker").exists()


def test_the_variable_counts_above_the_file_and_the_option_above_both(
    failed: str, database_url: str, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = "postgresql://127.0.0.1:1/x"
    configure(nowhere)
    monkeypatch.setenv("DATABASE_URL", database_url)
    by_variable = invoke("task", "list")
    status = invoke("db", "status")
    monkeypatch.setenv("DATABASE_URL", nowhere)
    by_option = invoke("task", "list", database=database_url)
    assert (failed in by_variable.output, status.exit_code, failed in by_option.output) == (True, 0, True)


def test_a_file_with_mistakes_is_refused_before_anything_is_done(
    failed: str, database_url: str, configure: Configure, tmp_path: Path
) -> None:
    (tmp_path / "merged.toml").write_text("[worker.lease]\nlease_ms = 1\n")
    result = invoke("task", "step", "reset", failed, STEP, database=database_url)
    assert result.exit_code == 1
    assert "Validation Error: worker.lease.lease_ms" in result.output
    assert "waiting" not in invoke("task", "show", failed, database=database_url).output


def test_a_root_without_any_file_is_left_aside_by_who_only_looks_and_has_a_url(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "TASKER_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TASKER_CONFIG_ROOT", str(tmp_path))
    for command in ("db status", "task list"):
        looked = invoke(*command.split(), database=database_url)
        assert looked.exit_code == 0, looked.output
        assert f"no configuration file below {tmp_path}" in looked.stderr
    assert "does not exist (TASKER_CONFIG_ROOT)" in invoke("task", "list").output
    assert "does not exist (TASKER_CONFIG_ROOT)" in invoke("run", LINEAR, database=database_url).output
    (tmp_path / "tasker").mkdir()
    (tmp_path / "tasker" / "complete-elsewhere.toml").touch()
    assert "does not exist (TASKER_CONFIG_ROOT)" in invoke("task", "list", database=database_url).output


@pytest.mark.parametrize("command", ["task list", "db status", "worker list"])
def test_a_url_that_is_given_is_what_the_files_of_a_fleet_ask_for(
    command: str, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "TASKER_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TASKER_CONFIG_ROOT", str(tmp_path))
    monkeypatch.setenv("TASKER_ENV", "test")
    (tmp_path / "tasker").mkdir()
    for context in ("worker", "orchestration"):  # and none for the complete configuration
        (tmp_path / "tasker" / f"{context}-test.toml").write_text('[common.database]\nurl = "${DATABASE_URL}"\n')

    assert "DATABASE_URL is not set" in invoke(*command.split()).output
    looked = invoke(*command.split(), database=database_url)
    assert (looked.exit_code, looked.stderr) == (0, "")


@pytest.mark.parametrize("command", ["db status", "task list", "pause list", "worker list", "template list"])
@pytest.mark.parametrize("folder", ["nothing", ".tasker/postgres"])
def test_where_nothing_has_run_no_database_is_made(
    command: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir(parents=True)
    result = invoke(*command.split())
    assert result.exit_code == 2
    assert "no database in .tasker/postgres" in result.output
    assert "TASKER_CONFIG_PATH" in result.output
    assert not list((tmp_path / folder).iterdir())


@pytest.mark.parametrize("option", [[], ["--backend", "redis"]], ids=["of the file", "by option"])
def test_a_step_that_is_reset_is_announced_where_the_file_says(
    option: list[str],
    failed: str,
    database_url: str,
    configure: Configure,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    providers = Providers(tmp_path / "merged.toml", "worker_linear_queue")
    providers.need("redis")
    if not option:
        providers.file.write_text(f'{providers.file.read_text()}\n[common.queues]\nbackend = "redis"\n')
    monkeypatch.setenv("DATABASE_URL", database_url)
    try:
        done = invoke("task", "step", "reset", failed, STEP, *option)
        assert done.exit_code == 0, done.output
        assert asyncio.run(_announced(providers)) == 1
    finally:
        providers.remove()


async def _announced(providers: Providers) -> int:
    async with providers.open("redis") as messaging:
        return len(await messaging.receive_messages("worker_linear_queue", 10, 60))
