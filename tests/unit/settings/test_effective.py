"""What `tasker config explain` says is what a process is made with, leaf by leaf, for every kind of process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import tasker_nats.settings
import tasker_rabbitmq.settings
import tasker_redis.settings
from tasker.app.configured import UNCONFIGURED, Configured, from_environment
from tasker.cli.commands.config_check import chosen
from tasker.cli.commands.config_text import explained
from tasker.redaction import REDACTED
from tasker.settings.catalogue import by_path
from tasker.settings.nested import leaves, nested
from tasker.template.plan import RetryPolicy

Leaf = tuple[str, Callable[[Any], Any]]
BREAKERS, EVENTS = "common.circuit_breakers.component_configs", "event_systems"
WORKER, ORCHESTRATION = "worker.event_systems.worker", "orchestration.event_systems.orchestration"
DECISIONS, DISPATCH = "orchestration.decision_points", "worker.mpsc_channels.handler_dispatch"
DEPTHS, QUEUES = "common.queues.pgmq.queue_depth_thresholds", "common.queues.orchestration_queues"


def same(path: str) -> Leaf:
    return path, lambda value: value


def times(path: str, factor: float) -> Leaf:
    return path, lambda value: value * factor


def unless_empty(path: str) -> Leaf:
    return path, lambda value: value or None


def events(system: str) -> dict[str, Leaf]:
    return {
        "system_id": same(f"{system}.system_id"),
        "deployment_mode": same(f"{system}.deployment_mode"),
        "lost_poll_ms": same("common.queues.pgmq.poll_interval_ms"),
        "listen_url": unless_empty("common.database.listen_url"),
        "health_check_interval_seconds": same(f"{system}.timing.health_check_interval_seconds"),
    }


def below(prefix: str, leaves: dict[str, Leaf]) -> dict[str, Leaf]:
    return {f"{prefix}.{name}": leaf for name, leaf in leaves.items()}


LEAVES: dict[str, Leaf] = {
    "database_url": unless_empty("common.database.url"),
    "shutdown_seconds": times("orchestration.shutdown_timeout_ms", 0.001),
    "backend": same("common.queues.backend"),
    "context_limit_bytes": same("common.execution.context_limit_bytes"),
    "namespaces": (f"{WORKER}.metadata.fallback_poller.supported_namespaces", tuple),
    "importable": ("worker.handlers.allow", tuple),
    "search_paths": ("common.task_templates.search_paths", tuple),
    "log_format": same("common.log.format"),
    "queue_names.task_requests": same(f"{QUEUES}.task_requests"),
    "queue_names.step_results": same(f"{QUEUES}.step_results"),
    "queue_names.task_finalizations": same(f"{QUEUES}.task_finalizations"),
    "worker.tags": ("worker.tags", frozenset),
    "retry.max_backoff_ms": times("common.backoff.max_backoff_seconds", 1000),
    "retry.multiplier": same("common.backoff.backoff_multiplier"),
    "retry.delays_ms": ("common.backoff.default_backoff_seconds", lambda found: tuple(each * 1000 for each in found)),
    "worker.rules.hidden_seconds": same("common.queues.default_visibility_timeout_seconds"),
    **below("worker.events", events(WORKER)),
    "worker.events.poll_ms": same(f"{WORKER}.metadata.fallback_poller.polling_interval_ms"),
    **below("orchestrator_events", events(ORCHESTRATION)),
    "orchestrator_events.poll_ms": times(f"{ORCHESTRATION}.timing.fallback_polling_interval_seconds", 1000),
    **{
        f"breakers.{ours}.{name}": same(f"{BREAKERS}.{theirs}.{name}")
        for ours, theirs in (("messaging", "messaging"), ("database", "web"), ("task_readiness", "task_readiness"))
        for name in ("failure_threshold", "timeout_seconds", "success_threshold")
    },
    "breakers.completion.failure_threshold": same("worker.circuit_breakers.ffi_completion_send.failure_threshold"),
    "breakers.completion.success_threshold": same("worker.circuit_breakers.ffi_completion_send.success_threshold"),
    "breakers.completion.timeout_seconds": same("worker.circuit_breakers.ffi_completion_send.recovery_timeout_seconds"),
    "breakers.slow_completion_ms": same("worker.circuit_breakers.ffi_completion_send.slow_send_threshold_ms"),
    "breakers.settle_seconds": same("common.circuit_breakers.global_settings.min_state_transition_interval_seconds"),
}
BY_TWO = {
    # [plugins]: they are told as lists, and checked against what is installed
    *("plugins.enabled", "plugins.disabled"),
    "retry.jitter",
    "environment",
    "worker.name",
    # [limits]: tables with names of their own, whose age is that of the file
    *("worker.named_limits.limits", "worker.named_limits.changed_at"),
}
"""What follows from whether somebody sets it, or from two settings: it has tests of its own."""
NOT_SET = {
    "origin",
    "orchestrator_events.listener",
    *("settings", "backend_settings", "plugins.settings", "worker.batch", "worker.drowse_ms", "worker.resources"),
    "sweeps.repair_ms",
    "sweeps.whole",
    *(f"retry.{name}" for name in ("retryable", "max_attempts", "backoff", "backoff_base_ms", "increment_ms")),
    *(f"retry.{name}" for name in ("max_elapsed_ms", "never_on", "only_on")),
    "retry.profile",
    "hooks",  # no name is given
    *("tenants", "worker.tenants"),  # no name is given
}
"""What no setting says; the tables of backends are below."""

TABLES = {
    "worker.events.listener": f"{WORKER}.metadata.listener",
    "worker.events.health": f"{WORKER}.health",
    "orchestrator_events.health": f"{ORCHESTRATION}.health",
    "worker.depth_limits": "common.queues.queue_depth_thresholds",
    "worker.rules.execution": "common.execution",
    "worker.rules.limits.decisions": "orchestration.decision_points",
    "worker.rules.limits.batches": "orchestration.batch_processing",
    "worker.rules.dead_letters": "orchestration.dlq",
    "worker.dispatch": "worker.mpsc_channels.handler_dispatch",
    "worker.hand_off": "worker.mpsc_channels.ffi_dispatch",
    "worker.execution": "worker.execution",
    "worker.lease": "worker.lease",
    "worker.limits": "common.execution",
    "worker.overflow": "common.mpsc_channels.overflow_policy",
    "worker.domain_events": "worker.mpsc_channels.domain_events",
    "worker.subscribers": "worker.mpsc_channels.in_process_events",
    "worker.seen_events": "worker.event_systems.worker.metadata.in_process_events",
    "http": "orchestration.web",
    "worker_port": "worker.web",
    "database": "common.database",
    "depth_limits": DEPTHS,
    "sweeps.ages": "common.sweep",
    "sweeps.timing": "orchestration.event_systems.task_readiness.timing",
    "sweeps.bursts": "common.failure_storm",
    "sweeps.dead_letters": "orchestration.dlq",
    "sweeps.batches": "orchestration.batch_processing",
    "sweeps.retention": "common.retention",
    "approvals": "common.approvals",
}
"""Tables that components take as they are."""

INHERITED = """
[common.circuit_breakers.default_config]
failure_threshold = 10
timeout_seconds = 60
success_threshold = 5
[common.circuit_breakers.component_configs.web]
timeout_seconds = 7
[common.queues.pgmq]
poll_interval_ms = 300
[common.queues.rabbitmq]
prefetch_count = 7
"""
TIMED = INHERITED + "[worker.event_systems.worker.timing]\nfallback_polling_interval_seconds = 4\n"
ALONE = "[worker.event_systems.worker.metadata.fallback_poller]\nenabled = false\n"


def leaves_of(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        inner = getattr(value, field.name)
        if is_dataclass(inner):
            yield from leaves_of(inner, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", inner


def assert_told(made: Configured, context: str) -> None:
    """Every leaf is what `explain` says."""
    found = chosen(context, None, None, None)
    for name, value in leaves_of(made):
        if name in LEAVES:
            path, meaning = LEAVES[name]
            told = explained(path, found)["value"]
            told = found.value(path) if told == REDACTED else told
            assert value == pytest.approx(meaning(told)) if isinstance(value, float) else value == meaning(told), name
        if name in TABLES:
            own = dict(leaves(nested({TABLES[name]: value.to_dict()})))
            told = {path: explained(path, found)["value"] for path in own if not by_path()[path].reserved}
            assert {path: found.value(path) if text == REDACTED else text for path, text in told.items()} == {
                path: own[path] for path in told
            }
    kinds = {
        "rabbitmq": tasker_rabbitmq.settings.RabbitmqSettings,
        "redis": tasker_redis.settings.RedisSettings,
        "nats": tasker_nats.settings.NatsSettings,
    }
    for backend, kind in kinds.items():
        used = kind(**made.backend_settings.get(backend, {}))  # type: ignore[arg-type]
        for name, value in leaves_of(used):
            if name in ("clock", "url"):  # urls are shown without secrets, if at all
                continue
            told = explained(f"common.queues.{backend}.{name}", found)["value"]
            assert value == told, f"{backend}.{name}"


def test_every_leaf_of_a_process_has_a_place_in_the_table() -> None:
    named = {*LEAVES, *TABLES, *BY_TWO, *NOT_SET}
    assert {name for name, _ in leaves_of(replace(UNCONFIGURED, retry=RetryPolicy()))} == named


@pytest.mark.parametrize("context", ["worker", "orchestration", "complete"])
@pytest.mark.parametrize("text", ["", INHERITED, TIMED, ALONE], ids=["empty", "inherited", "timed", "alone"])
def test_explain_tells_what_every_kind_of_process_uses(
    text: str, context: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "merged.toml").write_text(text)
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "merged.toml"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert_told(from_environment(context), context)


def test_explain_tells_what_a_single_process_without_configuration_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert_told(UNCONFIGURED, "complete")


def test_an_inherited_value_is_told_with_the_place_that_set_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "merged.toml"
    file.write_text(TIMED)
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(file))
    found = chosen("worker", None, None, None)
    default = "common.circuit_breakers.default_config.failure_threshold"
    told = explained(f"{BREAKERS}.messaging.failure_threshold", found)
    assert (told["value"], told["set_by"]) == (10, f"{file}:3, through {default}")
    own = explained(f"{BREAKERS}.web.timeout_seconds", found)
    assert (own["value"], own["set_by"]) == (7, f"{file}:7")
    polled = explained(f"{WORKER}.metadata.fallback_poller.polling_interval_ms", found)
    assert (polled["value"], polled["set_by"].partition(", ")[0]) == (4000, f"{file}:13")
