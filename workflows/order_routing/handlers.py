"""Handlers of the order routing example. None of them refers to a step."""

from __future__ import annotations

from typing import Any

from tasker.errors import PermanentError
from tasker.step_handler import inputs, step_handler


@step_handler("order_routing.score")
@inputs("total", "pieces")
def score(total: float, pieces: int) -> dict[str, Any]:
    return {"total": round(total, 2), "risk": 95 if pieces > 50 else 10}


@step_handler("order_routing.check")
@inputs("order_id", "by")
def check(order_id: str, by: str) -> dict[str, Any]:
    return {"order_id": order_id, "checked_by": by}


@step_handler("order_routing.reserve")
@inputs("sku", "quantity", "reference")
def reserve(sku: str, quantity: int, reference: str) -> dict[str, Any]:
    if sku.startswith("GONE"):
        raise PermanentError(f"{sku} is out of stock")
    return {"reservation": f"RES-{reference}-{sku}x{quantity}"}


@step_handler("order_routing.wrap")
@inputs("order_id")
def wrap(order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, "paper": "red"}


@step_handler("order_routing.confirm")
@inputs("order_id", "reservations", "missing", "checked", "wrapped")
def confirm(order_id: str, reservations: list[str], missing: int, checked: bool, wrapped: bool) -> dict[str, Any]:
    text = f"order {order_id}: {len(reservations)} lines reserved, {missing} missing"
    return {"text": text, "reservations": reservations, "checked": checked, "wrapped": wrapped}
