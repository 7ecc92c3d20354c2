"""Registry, resolvers, event bridge and pollers are those of the worker of this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tasker_core as t
from tasker.handlers.registry.registry import HandlerRegistry as EngineRegistry
from tasker_core import _tasker_core as native
from tasker_core import event_poller
from tasker_core.registry import HandlerDefinition, RegistryResolver
from tests.support.published_shop import Configured, Handler, Publisher, event, event_context

TEMPLATE = """
name: t
namespace_name: ns
version: 1.0.0
steps: [{name: s, handler: {callable: tests.support.published_shop.Handler}}]
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in ("TASKER_TEMPLATE_PATH", "TASKER_ENV", "WORKSPACE_PATH", "PYTHON_HANDLER_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    t.HandlerRegistry.reset_instance()
    t.EventBridge.reset_instance()
    yield
    t.HandlerRegistry.reset_instance()
    t.EventBridge.reset_instance()


def test_what_is_registered_here_is_what_the_engine_resolves() -> None:
    t.HandlerRegistry.instance().register("mine", Handler)

    assert EngineRegistry.instance().resolved(HandlerDefinition("mine")).name.endswith("Handler.call")
    assert t.HandlerRegistry.instance() is t.HandlerRegistry.instance()


def test_a_registry_that_the_engine_made_is_shared_as_well() -> None:
    EngineRegistry.instance().register("theirs", Handler)

    assert t.HandlerRegistry.instance().is_registered("theirs")


def test_a_resolver_that_is_added_here_is_asked_by_the_engine() -> None:
    class Mine(RegistryResolver):
        _name, prefix = "mine", "mine:"

        def resolve_handler(self, definition: Any, config: dict[str, Any]) -> Any:
            return Configured(config)

    t.HandlerRegistry.instance().resolver_chain.add_resolver(Mine())
    definition = HandlerDefinition("mine:x", initialization={"a": 1})

    assert EngineRegistry.instance().resolved(definition).source.qualname == "Configured"


def test_bootstrapping_registers_the_classes_that_templates_name(tmp_path: Path) -> None:
    (tmp_path / "config" / "tasks").mkdir(parents=True)
    (tmp_path / "config" / "tasks" / "t.yaml").write_text(TEMPLATE)
    (tmp_path / "config" / "tasks" / "broken.yaml").write_text("a: [")
    registry = t.HandlerRegistry.instance()

    assert registry.list_handlers() == ["h"]
    assert registry.bootstrap_handlers() == 1, "once"
    assert t.HandlerRegistry.instance().template_discovery_info()["bootstrapped"] is True


def test_in_the_test_environment_loaded_handlers_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("some_handlers")
    module.Handler = Handler  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some_handlers", module)
    monkeypatch.setenv("TASKER_ENV", "test")

    assert "h" in t.HandlerRegistry.instance().list_handlers()


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({}, "config/tasks"),
        ({"WORKSPACE_PATH": "elsewhere"}, "elsewhere/config/tasks"),
        ({"TASKER_ENV": "test"}, "tests/fixtures/task_templates/python"),
        ({"TASKER_TEMPLATE_PATH": "named"}, "named"),
    ],
)
def test_templates_are_found_where_they_were(
    variables: dict[str, str], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert t.TemplatePath.find_template_config_directory() is None
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / folder).mkdir(parents=True)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value) if "PATH" in name else value)

    found = t.TemplatePath.find_template_config_directory()
    assert found is not None
    assert found.resolve() == (tmp_path / folder).resolve()


def test_the_bridge_hears_of_registered_handlers_once() -> None:
    heard: list[Any] = []
    bridge = t.EventBridge.instance()
    bridge.start()
    bridge.subscribe_once(t.EventNames.HANDLER_REGISTERED, lambda name, handler: heard.append(name))
    for name in ("h", "later"):
        t.HandlerRegistry.instance().register(name, Handler)

    assert heard == ["h"]


def test_a_subscriber_of_steps_runs_a_handler_of_its_own_source() -> None:
    heard: list[Any] = []
    bridge, registry = t.EventBridge(), t.HandlerRegistry()
    registry.register("c", Handler)
    bridge.start()
    bridge.subscribe(t.EventNames.STEP_COMPLETION_SENT, heard.append)
    subscriber = t.StepExecutionSubscriber(bridge, registry, "w1")
    subscriber.start()
    bridge.publish(t.EventNames.STEP_EXECUTION_RECEIVED, event())
    subscriber.stop()

    (report,) = heard
    assert (report.success, report.result, report.worker_id) == (True, {"x": 1}, "w1")


def test_events_reach_callbacks_as_models_and_errors_the_error_callbacks() -> None:
    seen: list[t.InProcessDomainEvent] = []
    errors: list[Exception] = []
    poller = t.InProcessDomainEventPoller()
    poller.poll()
    poller.on_event(seen.append)
    poller.on_error(errors.append)
    Publisher().publish(event_context(), "order.paid")
    Publisher().publish(event_context().model_copy(update={"task_uuid": "no id"}), "order.lost")
    poller.poll()

    assert [(found.event_name, found.payload) for found in seen] == [("order.paid", {"a": 1})]
    assert len(errors) == 1
    with poller_running(poller), pytest.raises(RuntimeError):
        poller.start()


class poller_running:
    def __init__(self, poller: Any) -> None:
        self.poller = poller

    def __enter__(self) -> None:
        self.poller.start()

    def __exit__(self, *exc: object) -> None:
        self.poller.stop()
        assert not self.poller.is_running


def test_an_event_poller_tells_what_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event().model_dump(), event().model_dump()]
    monkeypatch.setattr(native, "poll_step_events", lambda: events.pop() if events else None)
    monkeypatch.setattr(native, "get_ffi_dispatch_metrics", lambda: {"pending_count": 0})
    monkeypatch.setattr(native, "cleanup_timeouts", lambda: 0)
    steps: list[Any] = []
    metrics: list[Any] = []
    errors: list[Exception] = []
    poller = event_poller.EventPoller(starvation_check_interval=2, cleanup_interval=2)
    poller.on_step_event(steps.append)
    poller.on_step_event(lambda found: 1 // 0)
    poller.on_metrics(metrics.append)
    poller.on_error(errors.append)

    assert [poller.poll() for _ in range(4)] == [True, True, False, False]
    assert [type(found) for found in steps] == [t.FfiStepEvent] * 2
    assert [found.pending_count for found in metrics] == [0, 0]
    assert [type(found) for found in errors] == [ZeroDivisionError] * 2


def test_an_event_poller_without_a_worker_reports_that_and_can_be_stopped() -> None:
    errors: list[Exception] = []
    poller = t.EventPoller(polling_interval_ms=1)
    poller.on_error(errors.append)
    with pytest.raises(RuntimeError):
        poller.poll()
    with poller_running(poller), pytest.raises(RuntimeError):
        poller.start()
