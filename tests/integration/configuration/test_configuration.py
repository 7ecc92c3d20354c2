"""Configuration from files and variables: found, merged, checked, generated."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tasker.app.configured import UNCONFIGURED, configured, from_environment
from tasker.errors import ConfigurationError
from tasker.services.configuration.loading import ConfigurationInvalid, assemble, from_sources, generate, load
from tasker.services.configuration.sources import CONTEXTS, ENVIRONMENTS, ConfigurationLayer, read_layer
from tasker.settings.nested import find, nested
from tasker.settings.queues import DepthThresholds
from tasker.template.plan import RetryPolicy

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "config" / "tasker"
URL = "postgresql://tasker:hunter2@db/tasker_production"
CONNECTIONS = "common.database.pool.max_connections"
HANDLERS = "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers"
NOW = datetime(2025, 10, 17, 15, 30, 45, tzinfo=UTC)

Write = Callable[[str, str], Path]


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
    alone = replace(UNCONFIGURED.worker, depth_limits=made.depth_limits)  # a process alone admits more tasks
    assert (made.worker, made.sweeps) == (alone, UNCONFIGURED.sweeps)
    assert made.depth_limits == DepthThresholds()
    assert find(common.tables, "common.backoff.max_backoff_seconds") == 60


def test_production_does_not_start_without_its_database() -> None:
    with pytest.raises(ConfigurationInvalid) as failed:
        from_sources("worker", "production", SHIPPED, {})
    (problem,) = failed.value.problems
    assert problem.path == "common.database.url"
    assert problem.issue == "The environment variable DATABASE_URL is not set"
    assert problem.place == f"{SHIPPED}/environments/production/common.toml:5"


@pytest.mark.parametrize("context", ["worker", "orchestration"])
def test_a_database_variable_that_is_empty_is_refused_like_one_that_is_not_set(context: str) -> None:
    with pytest.raises(ConfigurationInvalid) as failed:
        from_sources(context, "production", SHIPPED, {"DATABASE_URL": ""})
    (problem,) = failed.value.problems
    assert (problem.path, problem.issue) == (
        "common.database.url",
        "The environment variable DATABASE_URL is set but empty",
    )
    assert "url = " in generate(context, "production", SHIPPED, {"DATABASE_URL": ""}, NOW)


def test_the_environment_wins_and_siblings_are_inherited(sources: Path) -> None:
    pool = from_sources("common", "production", sources, {"DATABASE_URL": URL}).settings.common.database.pool
    assert (pool.max_connections, pool.min_connections) == (50, 8)


def test_a_context_reads_its_own_files_and_what_it_shares(sources: Path) -> None:
    worker = from_sources("worker", "development", sources, {})
    assert worker.settings.worker.mpsc_channels.handler_dispatch.max_concurrent_handlers == 3
    assert worker.settings.orchestration.decision_points.max_decision_depth == 11
    assert worker.settings.orchestration.event_systems.orchestration.deployment_mode == "Hybrid"
    orchestration = from_sources("orchestration", "development", sources, {}).settings
    assert orchestration.orchestration.event_systems.orchestration.deployment_mode == "PollingOnly"
    assert orchestration.worker.mpsc_channels.handler_dispatch.max_concurrent_handlers == 10


def test_an_environment_that_does_not_exist_is_named_with_those_that_do(sources: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"unknown environment 'staging' .* it has: development, production"):
        from_sources("common", "staging", sources, {})


def test_a_table_in_the_wrong_file_is_told_where_it_belongs(sources: Path, write: Write) -> None:
    write("c/base/common.toml", "[worker]\nworker_id = 'x'\n[database]\nurl = ''\n")
    with pytest.raises(ConfigurationInvalid) as failed:
        from_sources("common", "development", sources, {})
    first, second = failed.value.problems
    assert (first.path, first.fix, first.place) == ("worker", "Move it to worker.toml", f"{sources}/base/common.toml:1")
    assert second.fix.startswith("Did you mean common.database")


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
    made = configured(load("complete", {}).settings)
    assert made.retry == RetryPolicy()
    assert replace(made, retry=None) == UNCONFIGURED, "but that nobody has said what a fleet's retries are"


def test_the_path_variable_wins_and_the_source_is_logged(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    file = write("merged.toml", "[worker.lease]\nlease_ms = 20000\n")
    with caplog.at_level(logging.INFO, "tasker.configuration"):
        found = load("worker", {"TASKER_CONFIG_PATH": str(file), "TASKER_CONFIG_ROOT": "/nowhere"})
    assert configured(found.settings).worker.lease.lease_ms == 20_000
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
    with pytest.raises(ConfigurationError, match=r"is a folder, expected a file \(TASKER_CONFIG_PATH\)"):
        load("worker", {"TASKER_CONFIG_PATH": str(tmp_path)})
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
        f"Value: a whole number  ({file}:3)\n"
        "Issue: This setting does not exist\n"
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
    environ = {"TASKER_MESSAGING_BACKEND": "memory", "WORKER_NAMESPACES": "a, b", "TASKER_DEPLOYMENT_MODE": "Hybrid"}
    file = nested({"orchestration.event_systems.orchestration.deployment_mode": "PollingOnly"})
    found = assemble("complete", "test", [ConfigurationLayer("f", file, "")], environ)
    assert found.settings.common.queues.backend == "memory"
    assert found.settings.worker.event_systems.worker.metadata.fallback_poller.supported_namespaces == ("a", "b")
    assert found.settings.orchestration.event_systems.orchestration.deployment_mode == "PollingOnly"
    assert found.origin("worker.event_systems.worker.deployment_mode") == "environment variable TASKER_DEPLOYMENT_MODE"
    assert found.origin(HANDLERS) == "default for a single process"


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_URL_FILE"])
def test_the_variable_of_the_database_counts_above_the_file(name: str, write: Write) -> None:
    value = URL if name == "DATABASE_URL" else str(write("secret", URL))
    file = read_layer(write("m.toml", '[common.database]\nurl = "postgresql://elsewhere/${ABSENT}"\n'))
    found = assemble("worker", "test", [file], {name: value})
    assert found.settings.common.database.url == URL
    assert found.origin("common.database.url").startswith(f"environment variable {name}")


def test_what_is_reserved_for_a_later_version_is_refused_and_its_variables_do_not_count() -> None:
    assert assemble("complete", "test", [], {"TASKER_ORCHESTRATION_GRPC_BIND_ADDRESS": "h:1"})
    with pytest.raises(ConfigurationInvalid, match="Belongs to connections of a worker for requests") as bad:
        assemble(
            "complete",
            "test",
            [ConfigurationLayer("f", nested({"worker.web.database_pools.web_api_pool_size": 3}), "")],
            {},
        )
    assert [problem.path for problem in bad.value.problems] == ["worker.web.database_pools"]


def test_origins_tell_file_line_and_variable(sources: Path) -> None:
    found = from_sources("complete", "production", sources, {"DATABASE_URL": URL, "KIND": "heavy"})
    assert found.origin(CONNECTIONS) == f"{sources}/environments/production/common.toml:3"
    assert found.origin("common.database.pool.min_connections") == f"{sources}/base/common.toml:3"
    assert found.origin("worker.worker_id") == f"{sources}/base/worker.toml:2, environment variable KIND"
    assert found.origin("orchestration.decision_points.max_decision_depth") == f"{sources}/base/orchestration.toml:2"
    assert found.origin("worker.lease.lease_ms") == "default"
    assert not found.is_set("worker.lease.lease_ms")


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
    assert 'worker_id = "${KIND:-general}"' in text
    assert "hunter2" not in generate("worker", "production", sources, {"DATABASE_URL": URL}, NOW)
    environ = {"TASKER_CONFIG_PATH": str(write("merged.toml", text)), "DATABASE_URL": URL}
    assert load("worker", environ).settings == from_sources("worker", "production", sources, environ).settings


def test_generating_checks_the_values_it_knows(sources: Path, write: Write) -> None:
    write("c/environments/production/common.toml", f'[common.database]\nurl = "${{DATABASE_URL}}"\n[{HANDLERS}]\n')
    with pytest.raises(ConfigurationInvalid):
        generate("common", "production", sources, {}, NOW)
