"""Handlers of the order workflow. The warehouse and the payment provider are small fakes at the end of this file."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from tasker.errors import BusinessLogicError, NetworkError
from tasker.step_handler import inputs, step_handler
from tasker.types import StepContext

Result = dict[str, Any]
FRAUD_LIMIT = 90


@step_handler("fulfillment.validate_order")
@inputs("order_id", "item_count", "total_amount", "risk_score")
def validate_order(order_id: str, item_count: int, total_amount: float, risk_score: int) -> Result:
    if risk_score >= FRAUD_LIMIT:
        raise BusinessLogicError(
            f"order {order_id} was refused by the fraud check",
            error_code="fraud_detected",
            metadata={"risk_score": risk_score, "limit": FRAUD_LIMIT},
        )
    return {
        "order_id": order_id,
        "item_count": item_count,
        "total_amount": round(total_amount, 2),
        "validated_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@step_handler("fulfillment.check_inventory")
@inputs("items")
async def check_inventory(items: list[Result]) -> Result:
    missing = [item["sku"] for item in items if WAREHOUSE.get(item["sku"], 0) < item["quantity"]]
    if missing:
        raise BusinessLogicError(
            f"not in stock: {', '.join(missing)}", error_code="out_of_stock", metadata={"missing": missing}
        )
    return {"available": True, "skus": [item["sku"] for item in items]}


@step_handler("fulfillment.reserve_inventory")
@inputs("order_id", "items", "hold_minutes")
async def reserve_inventory(order_id: str, items: list[Result], hold_minutes: int) -> Result:
    """The reservation is named after the order, so reserving twice is reserving once."""
    reserved = {item["sku"]: item["quantity"] for item in items}
    return {"reservation_id": f"RES-{order_id}", "reserved": reserved, "hold_minutes": hold_minutes}


@step_handler("fulfillment.process_payment")
@inputs("order_id", "amount", "token", "time_out")
def process_payment(order_id: str, amount: float, token: str, time_out: bool, context: StepContext) -> Result:
    """The step's id is the same on every attempt: with it as idempotency key the provider charges once."""
    return charge(order_id, amount, token, idempotency_key=str(context.step_uuid), time_out=time_out)


@step_handler("fulfillment.ship_order")
@inputs("order_id", "express", "parcels", "paid_with")
def ship_order(order_id: str, express: bool, parcels: int, paid_with: str) -> Result:
    digits = hashlib.sha256(order_id.encode()).hexdigest()[:10].upper()
    return {
        "carrier": "express" if express else "standard",
        "tracking_number": f"TRK-{digits}",
        "delivery_days": 1 if express else 3,
        "parcels": parcels,
        "paid_with": paid_with,
    }


# --- what stands in for the outside world -------------------------------------------------------------------------

WAREHOUSE = {"LAMP-12": 40, "CHAIR-3": 8, "DESK-1": 5}


def charge(order_id: str, amount: float, token: str, idempotency_key: str, time_out: bool) -> Result:
    """A payment provider that can time out and decline; a real one takes the idempotency key along."""
    if time_out:
        raise NetworkError("the payment provider did not answer in time", metadata={"key": idempotency_key})
    if token == "tok_declined":
        raise BusinessLogicError("the card was declined", error_code="card_declined")
    return {"transaction_id": f"PAY-{order_id}", "amount": amount, "currency": "EUR"}
