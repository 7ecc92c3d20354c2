"""Configuration from files and variables: found, merged, checked, generated, explained, and obeyed."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tasker
from tasker.app.configured import UNCONFIGURED, configured, from_environment
from tasker.cli.main import cli
from tasker.errors import ConfigurationError
from tasker.services.configuration import ConfigurationInvalid, assemble, from_sources, generate, load
from tasker.services.configuration_sources import CONTEXTS, ENVIRONMENTS, Layer, read_layer
from tasker.services.templates import load_plans
from tasker.settings.check import check
from tasker.settings.layering import find, nested
from tasker.settings.single_process import SINGLE_PROCESS

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "config" / "tasker"
URL = "postgresql://tasker:hunter2@db/tasker_production"
CONNECTIONS = "common.database.pool.max_connections"
HANDLERS = "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers"
NOW = datetime(2025, 10, 17, 15, 30, 45, tzinfo=UTC)

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
        "[orchestration.decision_points]\nmax_depth = 11\n[orchestration.web]\nenabled = false\n",
    )
    write("c/base/worker.toml", '[worker]\nworker_type = "${KIND:-general}"\n')
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


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_every_environment_and_context_that_is_shipped_is_valid(context: str, environment: str) -> None:
    found = from_sources(context, environment, SHIPPED, {"DATABASE_URL": URL})
    assert found.settings.common.execution.environment == environment


def test_the_shipped_base_files_say_what_holds_without_any_file() -> None:
    common, *_ = layers = [
        read_layer(SHIPPED / "base" / f"{name}.toml") for name in ("common", "orchestration", "worker")
    ]
    settings = assemble("orchestration", "test", layers, {}).settings
    made = configured(settings)
    assert (made.worker, made.sweeps) == (UNCONFIGURED.worker, UNCONFIGURED.sweeps)
    assert find(common.tables, "common.backoff.max_backoff_seconds") == 60


def test_production_does_not_start_without_its_database() -> None:
    with pytest.raises(ConfigurationInvalid) as failed:
        from_sources("worker", "production", SHIPPED, {})
    (problem,) = failed.value.problems
    assert problem.path == "common.database.url"
    assert problem.issue == "The environment variable DATABASE_URL is not set"
    assert problem.place == f"{SHIPPED}/environments/production/common.toml:5"


def test_the_environment_wins_and_siblings_are_inherited(sources: Path) -> None:
    pool = from_sources("common", "production", sources, {"DATABASE_URL": URL}).settings.common.database.pool
    assert (pool.max_connections, pool.min_connections) == (50, 8)


def test_a_context_reads_its_own_files_and_what_it_shares(sources: Path) -> None:
    worker = from_sources("worker", "development", sources, {})
    assert worker.settings.worker.mpsc_channels.handler_dispatch.max_concurrent_handlers == 3
    assert worker.settings.orchestration.decision_points.max_decision_depth == 11
    assert worker.settings.orchestration.web.enabled is True
    orchestration = from_sources("orchestration", "development", sources, {}).settings
    assert orchestration.orchestration.web.enabled is False
    assert orchestration.worker.mpsc_channels.handler_dispatch.max_concurrent_handlers == 10


def test_an_environment_that_does_not_exist_is_named_with_those_that_do(sources: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no environment 'staging' .* it has: development, production"):
        from_sources("common", "staging", sources, {})


def test_a_table_in_the_wrong_file_is_told_where_it_belongs(sources: Path, write: Write) -> None:
    write("c/base/common.toml", "[worker]\nworker_id = 'x'\n[database]\nurl = ''\n")
    with pytest.raises(ConfigurationInvalid) as failed:
        from_sources("common", "development", sources, {})
    first, second = failed.value.problems
    assert (first.path, first.fix, first.place) == ("worker", "Move it to worker.toml", f"{sources}/base/common.toml:1")
    assert second.fix.startswith("Write common.database")


def test_orchestrator_and_worker_need_a_file() -> None:
    for context in ("orchestration", "worker"):
        with pytest.raises(ConfigurationError) as failed:
            load(context, {})
        assert str(failed.value) == (
            "Neither TASKER_CONFIG_PATH nor TASKER_CONFIG_ROOT is set.\n"
            "For Docker/production: set TASKER_CONFIG_PATH to the merged config file.\n"
            "For tests/development: set TASKER_CONFIG_ROOT to the config directory."
        )


def test_a_single_process_does_without_a_file() -> None:
    assert from_environment("complete", {}) is UNCONFIGURED
    assert configured(load("complete", {}).settings) == UNCONFIGURED


def test_the_path_variable_wins_and_the_source_is_logged(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    file = write("merged.toml", "[worker.lease]\nlease_ms = 20000\n")
    with caplog.at_level(logging.INFO, "tasker.configuration"):
        found = load("worker", {"TASKER_CONFIG_PATH": str(file), "TASKER_CONFIG_ROOT": "/nowhere"})
    assert configured(found.settings).worker.lease_ms == 20_000
    assert f"Loading worker configuration from: {file} (source: TASKER_CONFIG_PATH)" in caplog.messages


@pytest.mark.parametrize("folder", ["tasker", "tasker/generated"])
def test_the_root_variable_finds_the_file_by_context_and_environment(
    folder: str, write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(f"{folder}/worker-test.toml", "[worker.lease]\nlease_ms = 20000\n")
    environ = {"TASKER_CONFIG_ROOT": str(tmp_path), "TASKER_ENV": "test"}
    with caplog.at_level(logging.INFO, "tasker.configuration"):
        assert load("worker", environ).settings.worker.lease.lease_ms == 20_000
    assert caplog.messages == [
        f"Using convention-based config path: {file} (environment=test)",
        f"Loading worker configuration from: {file} (source: TASKER_CONFIG_ROOT (convention))",
    ]


def test_a_file_that_is_missing_or_is_not_toml_halts_the_start(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml does not exist \(TASKER_CONFIG_PATH\)"):
        load("worker", {"TASKER_CONFIG_PATH": str(tmp_path / "none.toml")})
    with pytest.raises(ConfigurationError, match=r"worker-development\.toml or .* does not exist"):
        load("worker", {"TASKER_CONFIG_ROOT": str(tmp_path)})
    file = write("bad.toml", "[common\nx = 1\n")
    with pytest.raises(ConfigurationError, match=r"bad\.toml is not TOML: .*line 1"):
        load("worker", {"TASKER_CONFIG_PATH": str(file)})


def test_unknown_keys_name_the_file_the_line_and_a_suggestion(write: Write) -> None:
    file = write("merged.toml", "[common.database.pool]\nmin_connections = 2\nmax_conections = 7\n")
    with pytest.raises(ConfigurationInvalid) as failed:
        load("worker", {"TASKER_CONFIG_PATH": str(file)})
    assert str(failed.value) == (
        "Validation Error: common.database.pool.max_conections\n"
        f"Value: 7  ({file}:3)\n"
        "Issue: Unknown setting\n"
        f"Fix: Did you mean {CONNECTIONS}?"
    )


def test_a_secret_may_come_from_a_file(write: Write) -> None:
    secret = write("secret", f"{URL}\n")
    found = assemble("common", "test", [], {"DATABASE_URL_FILE": str(secret)})
    assert found.settings.common.database.url == URL
    assert found.origin("common.database.url") == f"environment variable DATABASE_URL_FILE, file {secret}"


def test_a_secret_file_that_cannot_be_read_or_competes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL_FILE names cannot be read"):
        assemble("common", "test", [], {"DATABASE_URL_FILE": str(tmp_path / "none")})
    with pytest.raises(ConfigurationError, match="DATABASE_URL and DATABASE_URL_FILE are both set"):
        assemble("common", "test", [], {"DATABASE_URL_FILE": "x", "DATABASE_URL": "y"})


def test_variables_count_below_files_and_above_defaults() -> None:
    environ = {"TASKER_MESSAGING_BACKEND": "memory", "WORKER_NAMESPACES": "a, b", "TASKER_WEB_BIND_ADDRESS": "h:1"}
    found = assemble("complete", "test", [Layer("f", nested({"orchestration.web.bind_address": "h:2"}), "")], environ)
    assert found.settings.common.queues.backend == "memory"
    assert found.settings.worker.event_systems.worker.metadata.fallback_poller.supported_namespaces == ("a", "b")
    assert found.settings.orchestration.web.bind_address == "h:2"
    assert found.settings.worker.web.bind_address == "h:1"
    assert found.origin(HANDLERS) == "default for a single process"


def test_origins_tell_file_line_and_variable(sources: Path) -> None:
    found = from_sources("complete", "production", sources, {"DATABASE_URL": URL, "KIND": "heavy"})
    assert found.origin(CONNECTIONS) == f"{sources}/environments/production/common.toml:3"
    assert found.origin("common.database.pool.min_connections") == f"{sources}/base/common.toml:3"
    assert found.origin("worker.worker_type") == f"{sources}/base/worker.toml:2, environment variable KIND"
    assert found.origin("orchestration.decision_points.max_decision_depth") == f"{sources}/base/orchestration.toml:2"
    assert found.origin("worker.lease.lease_ms") == "default"
    assert not found.is_set("worker.lease.lease_ms")


def test_a_changed_setting_that_nothing_reads_yet_is_warned_of_in_one_line(
    monkeypatch: pytest.MonkeyPatch, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tasker.services.configuration.PENDING", {"worker.lease": "a part to come"})
    file = write("m.toml", "[worker.lease]\nlease_ms = 20000\ngrace_ms = 10000\n")
    load("worker", {"TASKER_CONFIG_PATH": str(file)})
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [f"worker.lease.lease_ms = 20000 has no effect yet (for: a part to come; set by {file}:2)"]


def test_a_generated_file_has_its_header_keeps_placeholders_and_loads(sources: Path, write: Write) -> None:
    text = generate("worker", "production", sources, {}, NOW)
    assert text.startswith(
        "# Generated by Tasker Configuration System\n"
        "# Context: worker\n"
        "# Environment: production\n"
        "# Generated At: 2025-10-17T15:30:45Z\n"
        f"# Base Config: {sources}/base/worker.toml\n"
        f"# Environment Override: {sources}/environments/production/worker.toml\n"
        "#\n"
        "# This is a merged configuration file combining base settings with\n"
        "# environment-specific overrides. Environment values take precedence.\n"
    )
    assert 'url = "${DATABASE_URL}"' in text
    assert 'worker_type = "${KIND:-general}"' in text
    assert "hunter2" not in generate("worker", "production", sources, {"DATABASE_URL": URL}, NOW)
    environ = {"TASKER_CONFIG_PATH": str(write("merged.toml", text)), "DATABASE_URL": URL}
    assert load("worker", environ).settings == from_sources("worker", "production", sources, environ).settings


def test_generating_checks_the_values_it_knows(sources: Path, write: Write) -> None:
    write("c/environments/production/common.toml", f'[common.database]\nurl = "${{DATABASE_URL}}"\n[{HANDLERS}]\n')
    with pytest.raises(ConfigurationInvalid):
        generate("common", "production", sources, {}, NOW)


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
    assert summary["Web API"] == "0.0.0.0:8080"
    assert summary["Database pool"] == "50 connections"
    assert summary["Deployment mode"] == "Hybrid"
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
        "Connections at most.",
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
    assert "has 1 problems" in broken.output
    assert "1000 to 600000" in broken.output


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


def test_the_shell_completes_keys() -> None:
    from click.shell_completion import ShellComplete

    completions = ShellComplete(cli, {}, "tasker", "_TASKER_COMPLETE").get_completions(
        ["config", "explain"], "worker.l"
    )
    assert [each.value for each in completions] == ["worker.lease.lease_ms", "worker.lease.grace_ms"]


async def test_an_app_obeys_its_configuration(database_url: str, tmp_path: Path) -> None:
    settings = check(
        nested(
            {
                **SINGLE_PROCESS,
                "common.database.url": database_url,
                "common.execution.on_blocked": "wait",
                "common.execution.result_limit_bytes": 1024,
                "orchestration.decision_points.max_decision_depth": 2,
            }
        )
    ).settings
    assert settings is not None
    (tmp_path / "workflow.yaml").write_text(
        "name: big\nnamespace: sizes\nversion: 1.0.0\nsteps:\n  - name: make\n    handler: sizes.make\n"
    )
    (tmp_path / "handlers.py").write_text(
        "from tasker.step_handler.functional import step_handler\n\n\n@step_handler('sizes.make')\ndef make(context):\n"
        "    return {'text': 'x' * 2000}\n"
    )
    async with tasker.App(configuration=configured(settings)) as app:
        submitted = await app.submit(tmp_path, {})
        async with asyncio.timeout(30):
            while (await app.tasks.state(submitted.task_uuid))[0] not in ("blocked_by_failures", "error"):
                pass
        report = await app.tasks.report(submitted.task_uuid)
    assert app.database_url == database_url
    assert report.status == "blocked_by_failures"
    assert "1,024 allowed" in str(report)


async def test_an_app_obeys_the_limits_of_decisions(database_url: str) -> None:
    table = "orchestration.decision_points"
    limits = {f"{table}.max_decision_depth": 1, f"{table}.warn_threshold_depth": 1}
    settings = check(nested({**SINGLE_PROCESS, "common.database.url": database_url, **limits})).settings
    assert settings is not None
    folder = ROOT / "workflows" / "nested_approval"
    async with tasker.App(configuration=configured(settings)) as app:
        report = await app.run(folder, json.loads((folder / "input.json").read_text()), timeout=60)
    assert report.status == "error"
    assert "the limit is 1" in str(report)


def test_steps_that_say_nothing_about_retries_take_the_configured_policy(write: Write) -> None:
    file = write(
        "workflow.yaml",
        "name: n\nnamespace: n\nversion: 1.0.0\nsteps:\n"
        "  - {name: silent, handler: h}\n"
        "  - {name: spoken, handler: h, retry: {max_attempts: 5}}\n"
        "  - {name: decide, type: decision, handler: h}\n",
    )
    settings = check(
        nested({"common.backoff.max_backoff_seconds": 60, "common.backoff.backoff_multiplier": 3.0})
    ).settings
    assert settings is not None
    (plan,) = load_plans(file, None, configured(settings).retry)
    policies = [step.retry for name in ("silent", "spoken", "decide") for step in [plan.by_name[name]]]
    assert [(each.max_backoff_ms, each.multiplier, each.jitter) for each in policies] == [
        (60_000, 3.0, 0.15),
        (30_000, 2.0, 0.0),
        (60_000, 3.0, 0.15),
    ]
    assert [each.max_attempts for each in policies] == [3, 5, 1]
