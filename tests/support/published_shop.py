"""What the questions to tasker_core are about: handlers of every kind, contexts, publishers, resolvers, a folder.

Uses nothing but the published package, so that any implementation of it can be asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

import tasker_core as t
from tasker_core import client, errors, models, types
from tasker_core.batch_processing import Batchable
from tasker_core.domain_events import BasePublisher, BaseSubscriber
from tasker_core.domain_events import InProcessDomainEventPoller as Poller
from tasker_core.domain_events import PublisherRegistry as Publishers
from tasker_core.domain_events import StepEventContext as EventContext
from tasker_core.domain_events import SubscriberRegistry as Subscribers
from tasker_core.registry import ExplicitMappingResolver, RegistryResolver
from tasker_core.registry import HandlerDefinition as Definition
from tasker_core.registry import MethodDispatchWrapper as Wrapper
from tasker_core.registry import ResolverChain as Chain
from tasker_core.step_handler import (
    ApiHandler,
    ApiResponse,
    BatchConfig,
    Decision,
    FunctionalHandler,
    StepHandler,
    api_handler,
    batch_analyzer,
    batch_worker,
    decision_handler,
    depends_on,
    inputs,
    step_handler,
)
from tasker_core.step_handler.mixins import DecisionMixin

__all__ = ["FunctionalHandler", "Publishers", "Subscribers", "client", "models", "types"]

U = "0198d1d4-0000-7000-8000-000000000000"
WORKER = {
    "cursor": {"batch_id": "001", "start_cursor": 0, "end_cursor": 5, "batch_size": 5},
    "batch_metadata": {"cursor_field": "id", "failure_strategy": "fail_fast"},
    "is_no_op": False,
}
NO_OP = {**WORKER, "is_no_op": True}
TEMPLATE = """
name: n
namespace_name: ns
version: 1.0.0
steps:
 - {name: s, handler: {callable: m.H}}
 - {name: t, handler: {callable: m.H}}
 - {name: u, handler: short}
"""


def event(
    *,
    deps: Any = None,
    inputs: Any = None,
    saved: Any = None,
    config: Any = None,
    attempts: int = 0,
    attempts_at_most: int = 3,
) -> t.FfiStepEvent:
    step = {"attempts": attempts, "max_attempts": attempts_at_most, "inputs": inputs or {}, "checkpoint": saved}
    step_data = {
        "task": {"task_uuid": U, "context": {"a": 1, "n": None}, "namespace_name": "ns"},
        "workflow_step": {"workflow_step_uuid": U, "task_uuid": U, "name": "s", **step},
        "dependency_results": deps or {"x": {"result": {"v": 1}}, "y": 5, "z": {"result": {"result": 7}}},
        "step_definition": {"name": "s", "handler": {"callable": "c", "initialization": config or {"c": 1}}},
    }
    return t.FfiStepEvent(event_id="e", task_uuid=U, step_uuid=U, correlation_id=U, task_sequence_step=step_data)


def ctx(**changed: Any) -> t.StepContext:
    return t.StepContext.from_ffi_event(event(**changed), "h")


class Handler(StepHandler, DecisionMixin, Batchable):
    handler_name = "h"

    def call(self, context: Any) -> Any:
        return self.success({"x": 1})


class Calling(ApiHandler):
    handler_name = "a"

    def call(self, context: Any) -> Any:
        return self.success({})


class Configured(StepHandler):
    handler_name = "cfg"

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def call(self, context: Any) -> Any:
        return self.success(self.config)

    def refund(self, context: Any) -> Any:
        return self.success({"refunded": 1})


h, a = Handler(), Calling()


@step_handler("f")
@depends_on(x="x")
@depends_on(z="z")
@inputs("a", "missing")
def f(x: Any, z: Any, a: Any, missing: Any = 9) -> Any:
    return {"x": x, "z": z, "a": a, "missing": missing}


@step_handler("five")
def five() -> int:
    return 5


@step_handler("nothing")
def nothing() -> None:
    return None


@step_handler("named")
@inputs("a")
def named(**given: Any) -> Any:
    return given


@step_handler("seen")
def seen(context: Any) -> Any:
    return {"type": type(context).__name__}


@step_handler("refused")
def refused() -> None:
    raise errors.ValidationError("no", metadata={"k": 1}, error_code="C")


@step_handler("later")
def later() -> None:
    raise errors.RateLimitError("later", retry_after=3)


@step_handler("broken")
def broken() -> None:
    raise ValueError("x")


@decision_handler("routes")
def routes() -> Any:
    return Decision.route(["s1"], k=1)


@decision_handler("skips")
def skips() -> Any:
    return Decision.skip("r")


@decision_handler("neither")
def neither() -> Any:
    return {"a": 1}


@batch_analyzer("cuts", worker_template="w")
def cuts() -> Any:
    return BatchConfig(10, 4, {"m": 1})


@batch_analyzer("cuts_nothing", worker_template="w")
def cuts_nothing() -> Any:
    return BatchConfig(0, 4, {"reason": "own"})


@batch_worker("works")
def works(batch_context: Any) -> Any:
    return {"without": batch_context is None}


@api_handler("asks", base_url="http://x.test", timeout=3, default_headers={"a": "b"})
def asks(api: Any) -> Any:
    return {"url": api.base_url, "timeout": api.default_timeout, "headers": api.default_headers}


@step_handler("awaited")
async def awaited() -> Any:
    return {"a": 1}


def ran(function: Any) -> Any:
    return function._handler_class().call(ctx())


def answer(status: int, body: Any = None, *, text: str = "", **headers: str) -> Any:
    content = {"json": body} if body is not None else {"text": text}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = httpx.Request("GET", "http://x.test")
    return ApiResponse(httpx.Response(status, headers=names, request=request, **content))


class Payments(RegistryResolver):
    _name, _priority, pattern = "payments", 7, r"^pay:(\w+)$"

    def resolve_handler(self, definition: Any, config: dict[str, Any]) -> Any:
        found = self._match_pattern(definition.callable)
        return found.group(1) if found else None


class ByPrefix(RegistryResolver):
    prefix = "x."


class Shapeless(RegistryResolver):
    pass


class Publisher(BasePublisher):
    publisher_name = "p"  # type: ignore[assignment]


class Silent(Publisher):
    def should_publish(self, ctx: Any) -> bool:
        return False


class Refusing(Publisher):
    def before_publish(self, event_name: str, payload: Any, metadata: Any) -> bool:
        raise ValueError("x")


class Telling(Publisher):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def before_publish(self, event_name: str, payload: Any, metadata: Any) -> bool:
        self.told.append([event_name, payload, sorted(set(metadata) - {"fired_at", "fired_by"})])
        return True


class Subscriber(BaseSubscriber):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    @classmethod
    def subscribes_to(cls) -> list[str]:
        return ["a.*", "b"]

    def handle(self, event: dict[str, Any]) -> None:
        self.heard.append(event)


class Failing(Subscriber):
    def handle(self, event: dict[str, Any]) -> None:
        raise ValueError("x")

    def on_handle_error(self, event: dict[str, Any], error: Exception) -> None:
        self.heard.append(type(error).__name__)


def event_context() -> Any:
    same = dict.fromkeys(("task_uuid", "step_uuid", "correlation_id"), U)
    return EventContext(**same, step_name="s", namespace="n", result={"a": 1}, metadata={"x": 1})


def write_templates(folder: Path) -> None:
    """A template, and files that are none or cannot be read."""
    texts = {"a.yaml": TEMPLATE, "bad.yml": "a: [\n", "list.yaml": "- 1\n", "tab.yaml": "a:\n\t- b\n"}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def namespace(folder: Path) -> dict[str, Any]:
    """The names that questions use; what keeps something in mind is made anew. The folder gets templates."""
    write_templates(folder)
    explicit = ExplicitMappingResolver()
    explicit.register("k", lambda config: ("made", config))
    explicit.register("o", h)
    explicit.register("c", Configured)
    return {
        **globals(),
        "registry": t.HandlerRegistry(),
        "chain": Chain.default().register("a", Handler),
        "explicit": explicit,
        "bridge": t.EventBridge(),
        "heard": [],
        "telling": Telling(),
        "subscriber": Subscriber(),
        "failing": Failing(),
        "publishers": Publishers(),
        "subscribers": Subscribers(),
        "poller": Poller(),
        "folder": folder,
        "wrapped": Wrapper(h, "success"),
        "Definition": Definition,
    }
