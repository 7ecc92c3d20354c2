"""The workflows behind the interface."""

from __future__ import annotations

from typing import Any

from tasker.errors import PermanentError
from tasker.handler import HandlerRegistry
from tasker.step_handler import inputs, step_handler

ORDERS = """
name: orders
namespace: shop
version: 1.0.0
description: Checks an order and takes the money.
input_schema:
  type: object
  required: [amount]
  properties: {amount: {type: integer}, lines: {type: array, items: {type: object, required: [sku]}}}
steps:
  - {name: check, handler: shop.check}
  - {name: charge, dependencies: [check], handler: shop.charge}
"""
NAMED = """
name: named
namespace: shop
version: 1.0.0
identity_strategy: caller_provided
steps: [{name: check, handler: shop.check_nothing}]
"""
WAITING = """
name: waiting
namespace: nobody
version: 1.0.0
identity_strategy: always_unique
steps: [{name: never, handler: nobody.never}]
"""
TEMPLATES = (ORDERS, NAMED)


@step_handler("shop.check")
@inputs("amount")
def check(amount: int) -> dict[str, Any]:
    if amount < 0:
        raise PermanentError("less than nothing", error_code="NEGATIVE")
    return {"amount": amount}


@step_handler("shop.charge")
def charge() -> dict[str, Any]:
    return {"charged": True}


@step_handler("shop.check_nothing")
def check_nothing() -> dict[str, Any]:
    return {}


def registered() -> HandlerRegistry:
    registry = HandlerRegistry()
    for name, handler in (("shop.check", check), ("shop.charge", charge), ("shop.check_nothing", check_nothing)):
        registry.register(name, handler)
    return registry


def order(amount: int, **more: Any) -> dict[str, Any]:
    """A request for a task."""
    return {"namespace": "shop", "name": "orders", "version": "1.0.0", "context": {"amount": amount}, **more}
