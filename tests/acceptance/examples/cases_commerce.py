"""Orders and checkouts: retries, refusals, and what goes on beside a failed branch."""

from __future__ import annotations

from tests.acceptance.examples.workflow_case import Case, Failed, load_input

ORDER = (
    "validate_order",
    "check_inventory",
    "reserve_inventory",
    "process_payment",
    "ship_order",
    "send_confirmation",
)
ORDER_RESULTS = {
    "check_inventory": {"available": True, "skus": ["DESK-1", "CHAIR-3", "LAMP-12"]},
    "reserve_inventory": {
        "reservation_id": "RES-ORD-1042",
        "reserved": {"DESK-1": 1, "CHAIR-3": 2, "LAMP-12": 1},
        "hold_minutes": 30,
    },
    "process_payment": {"transaction_id": "PAY-ORD-1042", "amount": 462.95, "currency": "EUR"},
    "ship_order": {
        "carrier": "express",
        "tracking_number": "TRK-20EBF597A4",
        "delivery_days": 1,
        "parcels": 3,
        "paid_with": "PAY-ORD-1042",
    },
    "send_confirmation": {
        "to": "customer@example.com",
        "subject": "Your order ORD-1042 is on its way",
        "text": "4 items, 462.95 EUR, tracking TRK-20EBF597A4",
    },
}
CUSTOMER = load_input("order_fulfillment")["customer"]

ORDER_CASES = [
    Case(
        "order",
        "order_fulfillment",
        ORDER,
        results=ORDER_RESULTS,
        holds={"validate_order": {"order_id": "ORD-1042", "item_count": 4, "total_amount": 462.95}},
        attempts=dict.fromkeys(ORDER, 1),
    ),
    Case(
        "order_payment_retried",
        "order_fulfillment",
        ORDER,
        {"simulate": {"payment_timeouts": 2}},
        ORDER_RESULTS,
        attempts={"process_payment": 3, "ship_order": 1},
    ),
    Case(
        "order_payment_never_answers",
        "order_fulfillment",
        ORDER,
        {"simulate": {"payment_timeouts": 3}},
        attempts={"process_payment": 3, "reserve_inventory": 1},
        waiting=ORDER[4:],
        failed=Failed("process_payment", "network_error", "", retryable=True),
    ),
    Case(
        "order_fraud_detected",
        "order_fulfillment",
        ORDER,
        {"customer": CUSTOMER | {"risk_score": 90}},
        attempts={"validate_order": 1},
        waiting=ORDER[1:],
        failed=Failed("validate_order", "business_logic_error", "fraud_detected", metadata={"risk_score": 90}),
    ),
    Case("order_just_below_fraud", "order_fulfillment", ORDER, {"customer": CUSTOMER | {"risk_score": 89}}),
    Case(
        "order_standard_tier",
        "order_fulfillment",
        ORDER,
        {"customer": CUSTOMER | {"tier": "standard"}},
        holds={"ship_order": {"carrier": "standard", "delivery_days": 3}},
    ),
    Case(
        "order_out_of_stock",
        "order_fulfillment",
        ORDER,
        {"items": [{"sku": "DESK-1", "quantity": 6, "unit_price": 249.0}]},
        waiting=("reserve_inventory", "ship_order", "send_confirmation"),
        failed=Failed("check_inventory", "business_logic_error", "out_of_stock", metadata={"missing": ["DESK-1"]}),
    ),
    Case(
        "order_card_declined",
        "order_fulfillment",
        ORDER,
        {"payment_token": "tok_declined"},
        results={"reserve_inventory": ORDER_RESULTS["reserve_inventory"]},
        attempts={"process_payment": 1},
        waiting=ORDER[4:],
        failed=Failed("process_payment", "business_logic_error", "card_declined"),
    ),
]

CHECKOUT = ("validate_cart", "calculate_tax", "reserve_stock", "process_payment", "create_order", "send_receipt")
CHECKOUT_RESULTS = {
    "validate_cart": {"subtotal_cents": 9_999, "pieces": 5},
    "calculate_tax": {"rate_percent": 19, "tax_cents": 1_900},
    "reserve_stock": {"reservation_id": "hold-A17", "skus": ["KETTLE", "MUG"]},
    "process_payment": {"payment_id": "pay-A17", "total_cents": 11_899, "method": "card"},
    "create_order": {"order_number": "order-A17", "status": "confirmed", "total_cents": 11_899},
    "send_receipt": {"sent": True, "subject": "Receipt for order-A17"},
}
CHECKOUT_CASES = [
    Case("checkout", "ecommerce_checkout", CHECKOUT, results=CHECKOUT_RESULTS),
    Case(
        "checkout_rate_limited",
        "ecommerce_checkout",
        CHECKOUT,
        {"simulate": {"rate_limited": 2}},
        CHECKOUT_RESULTS,
        attempts={"process_payment": 3},
    ),
    Case(
        "checkout_empty_cart",
        "ecommerce_checkout",
        CHECKOUT,
        {"lines": []},
        waiting=CHECKOUT[1:],
        failed=Failed("validate_cart", "validation_error", "empty_cart"),
    ),
    Case(
        "checkout_invalid_quantity",
        "ecommerce_checkout",
        CHECKOUT,
        {"lines": [{"sku": "MUG", "quantity": 0, "cents": 1250}]},
        waiting=CHECKOUT[1:],
        failed=Failed("validate_cart", "validation_error", "invalid_quantity"),
    ),
    Case(
        "checkout_country_not_served",
        "ecommerce_checkout",
        CHECKOUT,
        {"country": "US"},
        results={"reserve_stock": CHECKOUT_RESULTS["reserve_stock"]},
        waiting=CHECKOUT[3:],
        failed=Failed("calculate_tax", "business_logic_error", "country_not_served"),
    ),
    Case(
        "checkout_card_declined",
        "ecommerce_checkout",
        CHECKOUT,
        {"simulate": {"card_declined": True}},
        attempts={"process_payment": 1},
        waiting=CHECKOUT[4:],
        failed=Failed("process_payment", "business_logic_error", "card_declined"),
    ),
]
