"""`tasker config`: what it writes, says and hides."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tasker.cli.main import cli
from tasker.installed import installed_backends
from tasker.services.configuration.sources import CONTEXTS

URL = "postgresql://tasker:hunter2@db/tasker_production"
CONNECTIONS = "common.database.pool.max_connections"
HANDLERS = "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers"

Write = Callable[[str, str], Path]


def test_the_command_generates_into_the_usual_place_or_to_the_output(run: Callable[..., Result], sources: Path) -> None:
    made = run("generate", "--context", "worker", "--environment", "development", "--source-dir", sources)
    file = sources / "generated" / "worker-development.toml"
    assert made.output == f"wrote {file}\n"
    assert "max_concurrent_handlers = 3" in file.read_text()
    printed = run("generate", "--environment", "development", "--source-dir", sources, "--output", "-")
    assert "# Context: complete\n" in printed.output


def test_validate_says_what_it_checked_without_the_password(run: Callable[..., Result], sources: Path) -> None:
    arguments = ("validate", "--context", "orchestration", "--environment", "production", "--source-dir", sources)
    done = run(*arguments, DATABASE_URL=URL)
    assert done.exit_code == 0
    for line in ("✓ Configuration loaded", "✓ Validation passed", "Configuration is valid!"):
        assert line in done.output
    summary = dict(re.findall(r"^  ([\w ]+): +(.+)$", done.output, re.MULTILINE))
    assert summary["Context"] == "orchestration"
    assert summary["Environment"] == "production"
    assert summary["Database"] == "postgresql://tasker:***@db/tasker_production"
    assert summary["Database pool"] == "50 connections"
    assert summary["Deployment mode"] == "PollingOnly"
    assert "hunter2" not in done.output


def test_validate_without_a_context_checks_all_of_the_environment(run: Callable[..., Result], sources: Path) -> None:
    done = run("validate", "--source-dir", sources, TASKER_ENV="production", DATABASE_URL=URL)
    assert re.findall(r"Context: +(\w+)", done.output) == list(CONTEXTS)


def test_validate_shows_every_problem_once_and_fails(run: Callable[..., Result], sources: Path, write: Write) -> None:
    write("c/environments/development/common.toml", "[common.database.pool]\nmax_connections = 5000\nmin = 1\n")
    done = run("validate", "--source-dir", sources)
    assert done.exit_code == 1
    assert done.output.count("Validation Error: ") == 2
    assert "Configuration is not valid: 2 problems" in done.output
    listed = json.loads(run("validate", "--source-dir", sources, "--format", "json").output)
    assert listed["valid"] is False
    assert listed["problems"][0]["place"].endswith("common.toml:2")


@pytest.mark.parametrize(
    ("name", "fix"),
    [("rabitmq", "Did you mean rabbitmq?"), ("xyz", "Choose one of them, or install the package that brings it")],
)
def test_a_backend_that_is_not_installed_is_a_problem_of_a_check_and_none_of_a_generated_file(
    name: str, fix: str, run: Callable[..., Result], sources: Path, write: Write
) -> None:
    write("c/environments/development/common.toml", f'[common.queues]\nbackend = "{name}"\n')
    checked = run("validate", "--context", "common", "--source-dir", sources)
    made = run("generate", "--source-dir", sources, "--output", "-")
    merged = run("validate", "--file", write("merged.toml", made.output))
    assert (checked.exit_code, made.exit_code, merged.exit_code) == (1, 0, 1)
    assert (
        "Validation Error: common.queues.backend\n"
        f'Value: "{name}"  ({sources}/environments/development/common.toml:2)\n'
        f"Issue: No messaging backend of that name; installed: {', '.join(installed_backends())}\n"
        f"Fix: {fix}\n"
    ) in checked.output
    assert f'backend = "{name}"' in made.output
    assert fix in merged.output


def test_validate_reaches_the_database_when_it_is_told_to(
    run: Callable[..., Result], write: Write, server: object
) -> None:
    file = write("m.toml", '[common.database]\nurl = "${DATABASE_URL}"\n')
    good = run("validate", "--file", file, "--check-connectivity", DATABASE_URL=server.url)  # type: ignore[attr-defined]
    assert "✓ Connected to" in good.output
    bad = run("validate", "--file", file, "--check-connectivity", DATABASE_URL="postgresql://127.0.0.1:1/x")
    assert bad.exit_code == 1
    assert "cannot connect" in bad.output


def test_explain_tells_value_origin_range_and_meaning(run: Callable[..., Result], sources: Path) -> None:
    arguments = ("explain", CONNECTIONS, "--environment", "production", "--source-dir", sources)
    text = run(*arguments, DATABASE_URL=URL).output
    assert text.startswith(f"{CONNECTIONS} = 50\n")
    for part in (
        "common.toml:3",
        "Default: 25",
        "1 to 1000",
        "Maximum number of connections.",
        "30 to 50 in production",
        "Related",
    ):
        assert part in text
    facts = json.loads(run(*arguments, "--format", "json", DATABASE_URL=URL).output)
    assert (facts["value"], facts["default"], facts["range"]) == (50, 25, "1 to 1000")
    secret = run("explain", "--parameter", "common.database.url", DATABASE_URL=URL).output
    assert "***REDACTED***" in secret
    assert "hunter2" not in secret
    assert "environment variable DATABASE_URL" in secret


def test_explain_works_without_files_for_tables_and_while_the_configuration_is_broken(
    run: Callable[..., Result], write: Write
) -> None:
    assert "default for a single process" in run("explain", HANDLERS).output
    assert "worker.lease.grace_ms = 10000" in run("explain", "worker.lease").output
    file = write("bad.toml", "[worker.lease]\nlease_ms = 1\n")
    broken = run("explain", "worker.lease.lease_ms", "--file", file)
    assert "has 1 problem, " in broken.output
    assert "1000 to 600000" in broken.output


def test_explain_shows_a_value_though_another_setting_needs_a_variable_that_is_missing(
    run: Callable[..., Result], sources: Path
) -> None:
    arguments = ("explain", "--environment", "production", "--source-dir", sources)
    found = json.loads(run(*arguments, CONNECTIONS, "--format", "json").stdout)
    assert (found["value"], found["set_by"].partition(":")[2]) == (50, "3")
    missing = run(*arguments, "common.database.url")
    assert "DATABASE_URL is not set" in missing.stdout
    assert "no process can start with it" in missing.stderr


def test_explain_of_an_unknown_key_says_what_was_meant_and_of_a_refused_one_why(run: Callable[..., Result]) -> None:
    wrong = run("explain", "max_concurrent_handlers")
    assert wrong.exit_code == 2
    assert f"did you mean {HANDLERS}?" in wrong.output
    assert "engine's database" in run("explain", "common.pgmq_database.url").output


def test_show_prints_the_values_in_effect_without_secrets(run: Callable[..., Result], sources: Path) -> None:
    arguments = ("show", "--environment", "production", "--source-dir", sources)
    text = run(*arguments, "common.database", DATABASE_URL=URL).output
    assert 'url = "***REDACTED***"' in text
    assert "max_connections = 50\nmin_connections = 8\nacquire_timeout_seconds = 10\n" in text
    everything = json.loads(run(*arguments, "--format", "json", DATABASE_URL=URL).output)
    assert everything["environment"] == "production"
    assert "common.database.url" in everything["metadata"]["redacted_fields"]


def test_diff_lists_what_differs_between_environments_and_files(
    run: Callable[..., Result], sources: Path, write: Write
) -> None:
    done = run("diff", "development", "production", "--source-dir", sources, "--context", "common", DATABASE_URL=URL)
    assert done.output == f"{CONNECTIONS}: 30 -> 50\n"
    assert done.exit_code == 1
    file = write("m.toml", "[common.database.pool]\nmax_connections = 25\n")
    assert run("diff", file, file).exit_code == 0


def test_diff_needs_no_variable_that_the_files_name(run: Callable[..., Result], tmp_path: Path) -> None:
    assert run("init").exit_code == 0
    done = run("diff", "development", "production", "--context", "common")
    assert done.exit_code == 1
    assert done.stderr == ""
    assert "common.database.pool.max_connections" in done.stdout
    assert run("diff", "production", "production").exit_code == 0


def test_diff_of_what_cannot_be_compared_is_trouble_and_no_difference(
    run: Callable[..., Result], sources: Path, write: Write
) -> None:
    missing = run("diff", "development", "nosuch", "--source-dir", sources)
    assert (missing.exit_code, "unknown environment 'nosuch'" in missing.stderr) == (2, True)
    broken = run("diff", write("bad.toml", "[worker.lease]\nlease_ms = 1\n"), write("good.toml", ""))
    assert (broken.exit_code, "worker.lease.lease_ms" in broken.stderr) == (2, True)


def test_the_shell_completes_keys() -> None:
    from click.shell_completion import ShellComplete

    completions = ShellComplete(cli, {}, "tasker", "_TASKER_COMPLETE").get_completions(
        ["config", "explain"], "worker.l"
    )
    assert [each.value for each in completions] == ["worker.lease.lease_ms", "worker.lease.grace_ms"]
