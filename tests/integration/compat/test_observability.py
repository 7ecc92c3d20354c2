"""What a program asks about the worker in it: the answers of a worker's port, without one, after real work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasker.errors import TemplateNotFound
from tasker.execution.settings import WorkerSettings
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.settings.queues import HandOff
from tasker_core import EventBridge, TaskerClient, observability
from tasker_core import _tasker_core as published
from tasker_core._runtime.bootstrap import bootstrap_worker, running_system, stop_worker
from tasker_core._runtime.client import disconnect
from tasker_core.exceptions import WorkerNotInitializedError
from tests.support.waiting import until

TEMPLATE = """
name: holds
namespace: shop
version: 1.0.0
steps: [{name: hold, handler: shop.hold}, {name: pay, handler: shop.pay}]
"""
SETTINGS = "[worker.execution]\nthreads = 1\n[plugins]\nenabled = ['logs']\n[plugins.logs]\npath = '{folder}/journal'\n"


@pytest.fixture
def let_go(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A worker with one thread runs; a handler holds it until this is set, the other's template has no handler."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "holds.yaml").write_text(TEMPLATE)
    (tmp_path / "worker.toml").write_text(SETTINGS.replace("{folder}", str(tmp_path)))
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("TASKER_TEMPLATE_PATH", str(tmp_path / "templates"))
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "worker.toml"))
    let_go = threading.Event()
    HandlerRegistry.instance().register("shop.hold", lambda context: {"held": let_go.wait(60)})
    bootstrap_worker()
    yield let_go
    let_go.set()
    stop_worker()
    disconnect()
    HandlerRegistry.reset_instance()
    EventBridge.reset_instance()


def test_what_waits_for_a_thread_is_counted_with_its_age_and_its_starvation(let_go: threading.Event) -> None:
    nothing = observability.get_metrics()
    assert (nothing.dispatch_channel_pending, nothing.oldest_pending_age_ms) == (0, None)
    tasks = [TaskerClient().create_task("holds", namespace="shop", context={"n": n}) for n in range(3)]
    until(lambda: observability.get_metrics().dispatch_channel_pending == 2, "two wait for the only thread")
    running_system().runtime.settings = WorkerSettings(hand_off=HandOff(starvation_warning_threshold_ms=1))
    until(lambda: observability.get_metrics().starving_event_count == 2, "they starve")
    metrics = observability.get_metrics()
    assert metrics.starvation_detected
    assert (metrics.oldest_pending_age_ms or 0) >= (metrics.newest_pending_age_ms or 0) > 0
    assert metrics.steps_in_progress >= 1
    assert metrics.database_pool_size >= 1
    waiting = published.get_ffi_dispatch_metrics()
    assert (waiting["pending_count"], waiting["starving_event_count"]) == (2, 2)
    steps = {step.step_uuid for task in tasks for step in TaskerClient().list_task_steps(task.task_uuid)}
    assert waiting["oldest_event_id"] in steps
    let_go.set()
    until(lambda: observability.metrics_worker()["steps_succeeded"] == 3, "all have run")
    assert observability.get_metrics().dispatch_channel_pending == 0


def test_the_answers_of_a_port_are_had_without_one(let_go: threading.Event) -> None:
    let_go.set()
    TaskerClient().create_task("holds", namespace="shop", context={})
    until(lambda: observability.metrics_worker()["steps_succeeded"] == 1, "its step has run")
    until(observability.ready, "it is healthy")
    assert observability.alive()
    assert observability.health_live()["status"] == "alive"
    assert observability.health_basic()["worker_id"] == running_system().runtime.worker.identity
    detailed = observability.health_detailed()
    assert set(detailed["checks"]) >= {"database", "event_system", "step_processing", "circuit_breakers"}
    assert detailed["system_info"]["supported_namespaces"] == ["default", "shop"]
    assert observability.health_ready()["status"] == "ready"
    assert observability.listening_stats()["events_processed"] >= 1
    numbers = observability.prometheus_metrics()
    assert 'tasker_process_health{part="plugins"} 0\n' in numbers
    heard = [line for line in numbers.splitlines() if line.startswith('tasker_plugin_calls_total{plugin="logs"} ')]
    assert float(heard[0].split()[-1]) > 0
    assert observability.templates_list()["templates"] == ["shop/holds:1.0.0"]
    assert observability.template_get("shop", "holds", "1.0.0")["template"]["name"] == "holds"
    validation = observability.template_validate("shop", "holds", "1.0.0")
    assert (validation["valid"], validation["errors"]) == (False, ["no handler shop.pay"])
    assert (validation["handler_count"], validation["issues"]) == (2, validation["errors"])
    with pytest.raises(TemplateNotFound):
        observability.template_get("shop", "nothing", "1.0.0")
    config = observability.config()
    assert config["worker"]["execution"]["threads"] == 1
    assert "common.database.url" in config["metadata"]["redacted_fields"]
    assert observability.environment() == config["environment"]


def test_the_cache_of_templates_is_counted_emptied_and_read_anew(let_go: threading.Event) -> None:
    let_go.set()
    TaskerClient().create_task("holds", namespace="shop", context={"n": 1})
    until(lambda: observability.metrics_worker()["steps_succeeded"] == 1, "its step has run")
    once = observability.cache_stats()
    assert (once["total_entries"], once["misses"], once["evictions"], once["last_maintenance"]) == (1, 1, 0, None)

    assert observability.cache_clear() == {"success": True, "message": "forgot 1 templates"}
    assert observability.cache_stats()["total_entries"] == 0
    assert observability.cache_stats()["last_maintenance"] is not None
    TaskerClient().create_task("holds", namespace="shop", context={"n": 2})
    until(lambda: observability.metrics_worker()["steps_succeeded"] == 2, "the next one has run all the same")
    again = observability.cache_stats()
    assert (again["total_entries"], again["misses"]) == (1, 2)

    read = {"success": True, "message": "read shop/holds:1.0.0"}
    assert observability.template_refresh("shop", "holds", "1.0.0") == read
    missing = observability.template_refresh("shop", "holds", "9.9.9")
    assert (missing["success"], "no template shop/holds version 9.9.9" in missing["message"]) == (False, True)
    told = observability.templates_list(include_cache_stats=True)["cache_stats"]
    assert (told["total_cached"], told["supported_namespaces"]) == (1, ["shop"])
    assert observability.templates_list()["cache_stats"] is None
    kept = observability.template_get("shop", "holds", "1.0.0")
    assert (kept["cached"], kept["cache_age_seconds"] >= 0) == (True, True)


def test_without_a_worker_nothing_is_ready_and_the_rest_says_so() -> None:
    assert (observability.ready(), observability.alive()) == (False, False)
    for ask in (observability.health_basic, observability.prometheus_metrics, observability.config):
        with pytest.raises(WorkerNotInitializedError):
            ask()
        with pytest.raises(RuntimeError, match="Worker system not running"):
            ask()
