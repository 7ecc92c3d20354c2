"""A handler is served where its resources are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tasker.errors import DeclarationMismatch, ResourceMissing, RetryableError, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import StepHandler, step_handler, uses
from tasker.testing.contexts import step_context
from tests.unit.handlers.support import step_plan


@step_handler("count")
@uses(db="orders", crm="crm")
def count(db: Any, crm: Any) -> dict[str, Any]:
    return {"db": db, "crm": crm}


class ByClass(StepHandler):
    handler_name = "by_class"
    uses = ("orders",)

    def call(self, context: Any) -> Any:
        return self.success({"db": context.resource("orders")})


def registry(*resources: str) -> HandlerRegistry:
    made = HandlerRegistry()
    made.register("count", count)
    made.register("by_class", ByClass)
    made.provide_resources(resources)
    return made


def test_handlers_whose_resources_are_missing_are_neither_served_nor_resolved() -> None:
    handlers = registry("orders")
    assert "by_class" in handlers.served_handlers()
    assert "count" not in handlers.served_handlers()
    assert handlers.lacking() == ["count crm"]
    with pytest.raises(ResourceMissing, match="uses the resource `crm`, which this process does not have"):
        handlers.of_step(step_plan(callable="count"))
    assert registry("orders", "crm").lacking() == []


def test_a_step_with_a_missing_resource_is_refused_and_reported_once() -> None:
    handlers = registry("orders")
    step = replace(step_plan(callable="tasker.http"), inputs={"resource": "mail"})
    before = handlers.revision
    for _ in range(2):
        with pytest.raises(ResourceMissing, match="`mail`"):
            handlers.of_step(step)
    assert handlers.lacking() == ["count crm", "tasker.http mail"]
    assert "tasker.http" in handlers.served_handlers()
    assert handlers.revision == before + 1
    assert registry("mail").of_step(step)


def test_a_test_gives_a_handler_its_resources() -> None:
    context = step_context(resources={"orders": 1, "crm": 2})
    assert registry("orders", "crm").of_step(step_plan(callable="count")).call(context).result == {"db": 1, "crm": 2}
    assert ByClass().call(context).result == {"db": 1}
    with pytest.raises(RetryableError, match="this worker has no resource `mail`; it has: crm, orders"):
        context.resource("mail")
    with pytest.raises(RetryableError, match="it has: none"):
        step_context().resource("orders")


def test_declarations_that_fit_no_parameter_are_refused() -> None:
    handlers = registry()
    handlers.register("wrong", step_handler("wrong")(uses(dbb="orders")(lambda: None)))
    with pytest.raises(DeclarationMismatch, match="'dbb' is declared but"):
        handlers.resolve("wrong")
    with pytest.raises(UsageError, match="db is the name of a resource"):
        uses(db=3)  # type: ignore[arg-type]
