"""Checkout handlers with typed inputs and results: pydantic models go in and come out."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from tasker.errors import BusinessLogicError, RateLimitError, ValidationError
from tasker.step_handler import depends_on, inputs, step_handler
from tasker.types import StepContext


class Line(BaseModel):
    sku: str
    quantity: int
    cents: int


class Simulate(BaseModel):
    rate_limited: int = 0
    card_declined: bool = False


class Checkout(BaseModel):
    """The input of the workflow."""

    cart_id: str
    country: str
    lines: list[Line]
    payment_method: str
    simulate: Simulate = Simulate()


class Cart(BaseModel):
    """The result of validate_cart."""

    subtotal_cents: int
    pieces: int


class Tax(BaseModel):
    """The result of calculate_tax."""

    rate_percent: int
    tax_cents: int


class Payment(BaseModel):
    """The result of process_payment."""

    payment_id: str
    total_cents: int
    method: str


@step_handler("ecommerce.validate_cart")
@inputs(Checkout)
def validate_cart(inputs: Checkout) -> Cart:
    if not inputs.lines:
        raise ValidationError("the cart is empty", error_code="empty_cart")
    wrong = [line.sku for line in inputs.lines if line.quantity < 1]
    if wrong:
        raise ValidationError(f"the quantity must be 1 or more: {', '.join(wrong)}", error_code="invalid_quantity")
    return Cart(
        subtotal_cents=sum(line.quantity * line.cents for line in inputs.lines),
        pieces=sum(line.quantity for line in inputs.lines),
    )


@step_handler("ecommerce.calculate_tax")
@depends_on(cart=("validate_cart", Cart))
@inputs("country")
def calculate_tax(cart: Cart, country: str, context: StepContext) -> Tax:
    rates: dict[str, int] = context.get_config("rates")
    if country not in rates:
        raise BusinessLogicError(
            f"we do not deliver to {country}; we deliver to {', '.join(sorted(rates))}", error_code="country_not_served"
        )
    return Tax(rate_percent=rates[country], tax_cents=round(cart.subtotal_cents * rates[country] / 100))


@step_handler("ecommerce.reserve_stock")
@inputs("cart_id", "lines")
async def reserve_stock(cart_id: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {"reservation_id": f"hold-{cart_id}", "skus": sorted(line["sku"] for line in lines)}


@step_handler("ecommerce.process_payment")
@depends_on(cart=("validate_cart", Cart), tax=("calculate_tax", Tax))
@inputs(Checkout)
async def process_payment(inputs: Checkout, cart: Cart, tax: Tax, context: StepContext) -> Payment:
    if context.retry_count < inputs.simulate.rate_limited:
        raise RateLimitError("the payment provider is busy", retry_after=0.01)
    if inputs.simulate.card_declined:
        raise BusinessLogicError("the card was declined: ask for another", error_code="card_declined")
    return Payment(
        payment_id=f"pay-{inputs.cart_id}",
        total_cents=cart.subtotal_cents + tax.tax_cents,
        method=inputs.payment_method,
    )


@step_handler("ecommerce.create_order")
@depends_on(payment=("process_payment", Payment))
@inputs("cart_id")
def create_order(payment: Payment, cart_id: str) -> dict[str, Any]:
    return {"order_number": f"order-{cart_id}", "status": "confirmed", "total_cents": payment.total_cents}


@step_handler("ecommerce.send_receipt")
@depends_on(order="create_order")
async def send_receipt(order: dict[str, Any]) -> dict[str, Any]:
    return {"sent": True, "subject": f"Receipt for {order['order_number']}"}
