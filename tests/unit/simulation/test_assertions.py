"""Fakes record what handlers do with them, events are collected, and differences are named by their paths."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.simulate import simulate
from tasker.step_handler import StepHandler
from tasker.template.compile import compile_text
from tasker.testing.fakes import ResourceFakes
from tasker.testing.simulation import assert_no_effects, assert_published, assert_results, mock
from tasker.types import StepContext

(PLAN,) = compile_text("""
name: paid
namespace: shop
version: 1.0.0
steps:
  - name: charge
    handler: shop.charge
    retry: {max_attempts: 2}
    publishes_events:
      - {name: order.paid, condition: success, schema: {type: object}}
      - {name: order.declined, condition: permanent_failure, schema: {type: object}}
""").plans


class Charge(StepHandler):
    handler_name = "shop.charge"

    async def call(self, context: StepContext) -> Any:
        if context.input_data.get("dry"):
            return self.success({"id": 0})
        return self.success({"id": context.resource("bank").charge(7, currency="EUR")})


class Bank:
    name = "fake"

    def charge(self, amount: int, currency: str) -> int:
        return 1


@pytest.fixture
def fakes() -> ResourceFakes:
    fakes = ResourceFakes()
    fakes["bank"] = Bank()
    return fakes


def run(fakes: ResourceFakes, **values: Any) -> SimulatedRun:
    registry = HandlerRegistry()
    registry.register("shop.charge", Charge)
    return simulate(PLAN, values, handlers=registry, resources=fakes)


def test_calls_of_fakes_are_recorded(fakes: ResourceFakes) -> None:
    assert run(fakes).results == {"charge": {"id": 1}}
    assert [str(call) for call in fakes.calls_of("bank")] == ["bank.charge(7, currency='EUR')"]
    assert fakes["bank"].name == "fake"
    with pytest.raises(AssertionError, match=r"got 1:\n  bank.charge\(7, currency='EUR'\)"):
        assert_no_effects(fakes)


def test_run_without_calls_has_no_effects(fakes: ResourceFakes) -> None:
    run(fakes, dry=True)
    assert_no_effects(fakes)


def test_requests_of_an_http_fake_are_recorded(fakes: ResourceFakes) -> None:
    fakes.http("crm", lambda request: httpx.Response(204))
    fakes["crm"].send("GET", "/customers/7")
    assert [call.method for call in fakes.calls] == ["GET"]


def test_declared_events_are_published_as_their_conditions_say(fakes: ResourceFakes) -> None:
    paid = run(fakes)
    assert_published(paid, "order.paid", {"id": 1})
    assert_published(paid, "order.declined", times=0)
    declined = simulate(PLAN, {}, {"charge": mock.fails("declined", retryable=False)})
    assert_published(declined.events, "order.declined", {"error_type": "declined"})


def test_event_that_differs_is_shown_with_the_path(fakes: ResourceFakes) -> None:
    with pytest.raises(AssertionError, match=r"order.paid.id: expected 2, was 1\n  published: order.paid"):
        assert_published(run(fakes), "order.paid", {"id": 2})


def test_results_differ_by_path(fakes: ResourceFakes) -> None:
    with pytest.raises(AssertionError, match=r"charge.id: expected 3, was 1"):
        assert_results(run(fakes), charge={"id": 3})


def test_mock_that_is_not_called_is_refused() -> None:
    with pytest.raises(UsageError, match=r"write mock.lost\(...\)"):
        simulate(PLAN, {}, {"charge": mock.lost})
