"""Handlers of the order workflow. The warehouse and the payment provider are small fakes at the end of this file."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from tasker.errors import BusinessLogicError, NetworkError
from tasker.step_handler import depends_on, inputs, step_handler
from tasker.types import StepContext

Result = dict[str, Any]
FRAUD_LIMIT = 90


@step_handler("fulfillment.validate_order")
@inputs("order_id", "customer", "items")
def validate_order(order_id: str, customer: Result, items: list[Result]) -> Result:
    if customer.get("risk_score", 0) >= FRAUD_LIMIT:
        raise BusinessLogicError(
            f"order {order_id} was refused by the fraud check",
            error_code="fraud_detected",
            metadata={"risk_score": customer["risk_score"], "limit": FRAUD_LIMIT},
        )
    return {
        "order_id": order_id,
        "item_count": sum(item["quantity"] for item in items),
        "total_amount": round(sum(item["quantity"] * item["unit_price"] for item in items), 2),
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
@inputs("order_id", "items")
async def reserve_inventory(order_id: str, items: list[Result], context: StepContext) -> Result:
    """The reservation is named after the order, so reserving twice is reserving once."""
    return {
        "reservation_id": f"RES-{order_id}",
        "reserved": {item["sku"]: item["quantity"] for item in items},
        "hold_minutes": context.get_config("hold_minutes"),
    }


@step_handler("fulfillment.process_payment")
@depends_on(order="validate_order")
@inputs("payment_token", "simulate")
def process_payment(order: Result, payment_token: str, simulate: Result | None, context: StepContext) -> Result:
    """The step's id is the same on every attempt: with it as idempotency key the provider charges once."""
    return charge(
        order=order,
        token=payment_token,
        idempotency_key=str(context.step_uuid),
        time_out=context.retry_count < (simulate or {}).get("payment_timeouts", 0),
    )


@step_handler("fulfillment.ship_order")
@depends_on(order="validate_order", reservation="reserve_inventory", payment="process_payment")
@inputs("customer")
def ship_order(order: Result, reservation: Result, payment: Result, customer: Result) -> Result:
    express = customer.get("tier") == "gold"
    digits = hashlib.sha256(order["order_id"].encode()).hexdigest()[:10].upper()
    return {
        "carrier": "express" if express else "standard",
        "tracking_number": f"TRK-{digits}",
        "delivery_days": 1 if express else 3,
        "parcels": len(reservation["reserved"]),
        "paid_with": payment["transaction_id"],
    }


@step_handler("fulfillment.send_confirmation")
@depends_on(order="validate_order", shipment="ship_order")
@inputs("customer")
async def send_confirmation(order: Result, shipment: Result, customer: Result) -> Result:
    return {
        "to": customer["email"],
        "subject": f"Your order {order['order_id']} is on its way",
        "text": f"{order['item_count']} items, {order['total_amount']:.2f} EUR, tracking {shipment['tracking_number']}",
    }


# --- what stands in for the outside world -------------------------------------------------------------------------

WAREHOUSE = {"LAMP-12": 40, "CHAIR-3": 8, "DESK-1": 5}


def charge(order: Result, token: str, idempotency_key: str, time_out: bool) -> Result:
    """A payment provider that can time out and decline; a real one takes the idempotency key along."""
    if time_out:
        raise NetworkError("the payment provider did not answer in time", metadata={"key": idempotency_key})
    if token == "tok_declined":
        raise BusinessLogicError("the card was declined", error_code="card_declined")
    return {"transaction_id": f"PAY-{order['order_id']}", "amount": order["total_amount"], "currency": "EUR"}
