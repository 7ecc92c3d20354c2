"""The workflows behind the interface."""

from __future__ import annotations

from typing import Any

from tasker.errors import PermanentError
from tasker.handlers.registry.registry import HandlerRegistry
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
CARDS = """
name: cards
namespace: shop
version: 1.0.0
identity_strategy: always_unique
input_schema:
  type: object
  properties:
    card: {$ref: "#/$defs/card"}
    shop: {type: string}
  $defs: {card: {type: object, properties: {number: {type: string, x-sensitive: true}, brand: {type: string}}}}
steps:
  - name: token
    handler: shop.token
    result_schema: {type: object, properties: {pin: {type: integer, x-sensitive: true}, brand: {type: string}}}
  - {name: charge, dependencies: [token], handler: shop.refuse, retry: {max_attempts: 1}}
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


@step_handler("shop.token")
@inputs("card")
def token(card: dict[str, Any]) -> dict[str, Any]:
    return {"pin": 987654321, "brand": card["brand"]}


@step_handler("shop.refuse")
@inputs("card")
def refuse(card: dict[str, Any]) -> dict[str, Any]:
    raise PermanentError(f"the card {card['number']} is refused", error_code="REFUSED")


def registered() -> HandlerRegistry:
    registry = HandlerRegistry()
    handlers = {"check": check, "charge": charge, "check_nothing": check_nothing, "token": token, "refuse": refuse}
    for name, handler in handlers.items():
        registry.register(f"shop.{name}", handler)
    return registry


def order(amount: int, **more: Any) -> dict[str, Any]:
    """A request for a task."""
    return {"namespace": "shop", "name": "orders", "version": "1.0.0", "context": {"amount": amount}, **more}
