"""Handlers as their authors wrote them for tasker_core."""

from __future__ import annotations

from typing import Any

import httpx

from tasker_core import (
    ApiHandler,
    BasePublisher,
    BaseSubscriber,
    Batchable,
    DecisionHandler,
    ErrorType,
    HandlerDefinition,
    HandlerRegistry,
    PermanentError,
    RegistryResolver,
    StepContext,
    StepEventContext,
    StepHandler,
    StepHandlerResult,
)
from tasker_core.step_handler import depends_on, inputs, step_handler

HEARD: list[dict[str, Any]] = []
TAX = 1.1


class OrderPublisher(BasePublisher):
    @property
    def publisher_name(self) -> str:
        return "orders"


class OrderSubscriber(BaseSubscriber):
    @classmethod
    def subscribes_to(cls) -> list[str]:
        return ["order.*"]

    def handle(self, event: dict[str, Any]) -> None:
        HEARD.append(event)


class Validate(StepHandler):
    handler_name = "shop.validate"

    def call(self, context: StepContext) -> StepHandlerResult:
        amount = context.get_input("amount")
        if amount is None or amount <= 0:
            return self.failure("no amount", error_type=ErrorType.VALIDATION_ERROR, retryable=False)
        if amount > context.get_config("largest"):
            raise PermanentError("too much", metadata={"amount": amount})
        return self.success({"amount": amount, "result": "looks good"})


@step_handler("shop.price")
@depends_on(validated="validate")
@inputs("items")
def price(validated: dict[str, Any], items: int, context: StepContext) -> dict[str, Any]:
    assert isinstance(context, StepContext)
    return {"total": round(validated["amount"] * TAX, 2), "items": items}


class Quote(ApiHandler):
    handler_name = "shop.quote"
    base_url = "http://carrier.test"

    @property
    def client(self) -> httpx.Client:
        self._client = self._client or httpx.Client(base_url=self.base_url, transport=httpx.MockTransport(carrier))
        return self._client

    def call(self, context: StepContext) -> StepHandlerResult:
        raise NotImplementedError("the template names another method")

    def ask(self, context: StepContext) -> StepHandlerResult:
        response = self.get("/quote", params={"items": context.get_input("items")})
        return self.api_success(response) if response.ok else self.api_failure(response)


def carrier(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"carrier": "post", "items": int(request.url.params["items"])})


class Stamp(StepHandler):
    handler_name = "shop.stamp"

    def __init__(self, config: dict[str, Any]) -> None:
        self.mark = config["mark"]

    def call(self, context: StepContext) -> StepHandlerResult:
        envelope = context.dependency_results["validate"]
        return self.success({"mark": self.mark, "amount": envelope["result"]["amount"]})


class Route(DecisionHandler):
    handler_name = "shop.route"

    def call(self, context: StepContext) -> StepHandlerResult:
        total = context.get_dependency_field("price", "total")
        if total < 100:
            return self.skip_branches("nobody has to look at it", routing_context={"total": total})
        return self.decision_success(["approve", "book"], routing_context={"total": total})


@step_handler("shop.approve")
@depends_on(decided="route")
async def approve(decided: dict[str, Any]) -> dict[str, Any]:
    return {"approved": decided["routing_context"]["total"]}


class Book(StepHandler):
    handler_name = "shop.book"

    def call(self, context: StepContext) -> StepHandlerResult:
        published = OrderPublisher().publish(
            StepEventContext.from_step_context(context, result={"booked": context.get_input("amount")}), "order.booked"
        )
        return self.success({"published": published})


class Analyze(StepHandler, Batchable):
    handler_name = "shop.analyze"

    def call(self, context: StepContext) -> StepHandlerResult:
        items = context.get_dependency_field("quote", "items")
        reason = {} if items else {"reason": "nothing_to_ship"}
        return self.batch_analyzer_success(
            self.create_batch_outcome(items, batch_size=4, batch_metadata=reason), worker_template_name="ship"
        )


class Ship(StepHandler, Batchable):
    handler_name = "shop.ship"

    def __init__(self) -> None:
        super().__init__()
        self.shipped: list[int] = []

    def call(self, context: StepContext) -> StepHandlerResult:
        if (nothing := self.handle_no_op_worker(context)) is not None:
            return nothing
        batch = self.get_batch_context(context)
        assert batch is not None
        first = context.checkpoint_cursor if context.has_checkpoint() else batch.start_cursor
        before = context.accumulated_results or {"shipped": []}
        for item in range(first, batch.end_cursor):
            self.shipped.append(item)
            if len(self.shipped) == 2 and item + 1 < batch.end_cursor:
                kept = {"shipped": [*before["shipped"], *self.shipped]}
                try:
                    return self.checkpoint_yield(
                        item + 1, items_processed=len(kept["shipped"]), accumulated_results=kept
                    )
                except BaseException:
                    raise AssertionError("a checkpoint is a value to return") from None
        done = [*before["shipped"], *self.shipped]
        return self.batch_worker_success(items_processed=len(done), batch_metadata={"shipped": done})


class Partners(RegistryResolver):
    """What partners do, by the name that follows theirs."""

    _name = "partners"
    pattern = r"partners:(\w+)$"

    def resolve_handler(self, definition: HandlerDefinition, config: dict[str, Any]) -> Any:
        found = self._match_pattern(definition.callable)
        return PartnerHandler(found.group(1)) if found else None


class PartnerHandler(StepHandler):
    def __init__(self, does: str) -> None:
        self.does = does

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"does": self.does, "total": context.get_dependency_result("price")["total"]})


HandlerRegistry.instance(skip_bootstrap=True).resolver_chain.add_resolver(Partners())


class SumUp(StepHandler, Batchable):
    handler_name = "shop.sum_up"

    def call(self, context: StepContext) -> StepHandlerResult:
        scenario = self.detect_aggregation_scenario(context.dependency_results, "analyze", "ship_")
        return self.aggregate_batch_worker_results(
            scenario,
            {"shipped": [], "why": scenario.batchable_result.get("reason")},
            lambda results: {"shipped": [item for r in results.values() for item in r["batch_metadata"]["shipped"]]},
        )
