"""A charge that waits for the provider without a worker, and a booking that looks again after a while."""

from __future__ import annotations

import hashlib
from typing import Any

from tasker.step_handler import StepHandler, step_handler
from tasker.types import StepContext, StepHandlerResult


class Provider:
    """A payment provider: it knows a session by the key of its request, so a repeated request is the same one."""

    def create(self, order: str, amount: int, key: str) -> str:
        """Begin a charge; the provider sends `payment.authorized` or `payment.declined` later. Return its session."""
        return "S-" + hashlib.sha256(f"{order} {amount} {key}".encode()).hexdigest()[:8]

    def capture(self, session: str, amount: int) -> int:
        """Capture an authorized amount; return it."""
        return amount

    def is_reported(self, session: str, looks: int) -> bool:
        """Return whether the report of the provider has the session."""
        return looks >= 2


provider = Provider()


@step_handler("payments.charge")
def charge(context: StepContext) -> dict[str, Any]:
    """Begin the charge in the first call, and capture it in the call with the provider's event."""
    amount = context.get_input("amount")
    if context.event is None:
        session = provider.create(context.get_input("order"), amount, key=str(context.step_uuid))
        context.again_when(
            "payment.updated",
            key=context.get_input("order"),
            timeout="2h",
            state={"session": session},
            schema={"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
        )
    session, status = context.state["session"], context.event.payload["status"]
    if status == "pending":  # the provider sends more than one event: wait for the next
        context.again_when("payment.updated", key=context.get_input("order"), timeout="2h")
    captured = provider.capture(session, amount) if status == "authorized" else 0
    return {"session": session, "status": status, "captured": captured}


class Book(StepHandler):
    """Looks at the provider's report each minute, until it has the session."""

    handler_name = "payments.book"

    def call(self, context: StepContext) -> StepHandlerResult:
        charged = context.get_dependency_result("charge")
        looks = context.state.get("looks", 0)
        if charged["captured"] and not provider.is_reported(charged["session"], looks):
            self.again_in("1m", reason="not in the report yet", state={"looks": looks + 1})
        return self.success({"booked": charged["captured"], "looks": looks})
