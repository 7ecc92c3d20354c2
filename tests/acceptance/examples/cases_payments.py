"""Payments: network faults, refusals, a capture whose answer is lost."""

from __future__ import annotations

from typing import Any

from tests.acceptance.examples.workflow_case import Case, Failed, load_input

PAYMENT = (
    "validate_payment_request",
    "check_fraud",
    "authorize_payment",
    "capture_payment",
    "record_transaction",
    "send_notification",
)
PAYMENT_RESULTS = {
    "validate_payment_request": {"payment_id": "PMT-3001", "amount_cents": 12_999, "valid": True},
    "check_fraud": {"approved": True, "rules_checked": 2},
    "authorize_payment": {"authorization_code": "AUTH-PMT-3001", "gateway_transaction_id": "GTW-PMT-3001"},
    "capture_payment": {
        "transaction_id": "CAP-PMT-3001",
        "amount_cents": 12_999,
        "authorization_code": "AUTH-PMT-3001",
        "already_captured": False,
    },
    "record_transaction": {
        "entries": [
            {"id": "CAP-PMT-3001-D", "account": "ACC-55", "cents": -12_999},
            {"id": "CAP-PMT-3001-C", "account": "merchant", "cents": 12_999},
        ]
    },
    "send_notification": {
        "webhook": {"event": "payment.captured", "payment_id": "PMT-3001"},
        "receipt": "129.99 EUR",
    },
}
ACCOUNT = load_input("payment_processing")["account"]


def refused_payment(id: str, step: str, code: str, error_type: str = "permanent_error", **change: Any) -> Case:
    """A payment that ends at `step` on its first attempt."""
    metadata = {"requires_manual_intervention": code == "invalid_card"} if step == "authorize_payment" else {}
    return Case(
        id,
        "payment_processing",
        PAYMENT,
        change,
        attempts={step: 1},
        waiting=PAYMENT[PAYMENT.index(step) + 1 :],
        failed=Failed(step, error_type, code, metadata=metadata),
    )


PAYMENT_CASES = [
    Case("payment", "payment_processing", PAYMENT, results=PAYMENT_RESULTS),
    Case(
        "payment_network_timeouts",
        "payment_processing",
        PAYMENT,
        {"simulate": {"network_timeouts": 2}},
        PAYMENT_RESULTS,
        attempts={"authorize_payment": 3, "capture_payment": 1},
    ),
    Case(
        "payment_capture_reply_lost",
        "payment_processing",
        PAYMENT,
        {"simulate": {"capture_reply_lost": True}},
        {
            "capture_payment": {"transaction_id": "CAP-PMT-3001", "amount_cents": 12_999, "already_captured": True},
            "record_transaction": PAYMENT_RESULTS["record_transaction"],
        },
        attempts={"capture_payment": 2},
    ),
    Case(
        "payment_gateway_never_answers",
        "payment_processing",
        PAYMENT,
        {"simulate": {"network_timeouts": 4}},
        attempts={"authorize_payment": 4},
        waiting=PAYMENT[3:],
        failed=Failed("authorize_payment", "timeout", "network_timeout", retryable=True),
    ),
    refused_payment("payment_insufficient_funds", "authorize_payment", "insufficient_funds", amount_cents=50_001),
    refused_payment(
        "payment_invalid_card",
        "authorize_payment",
        "invalid_card",
        method={"type": "card", "number": "4000000000000000"},
    ),
    refused_payment("payment_over_the_limit", "check_fraud", "fraud_detected", amount_cents=1_000_001),
    refused_payment(
        "payment_too_many_per_hour", "check_fraud", "fraud_detected", account=ACCOUNT | {"payments_last_hour": 10}
    ),
    refused_payment(
        "payment_invalid_amount", "validate_payment_request", "invalid_amount", "validation_error", amount_cents=0
    ),
    refused_payment(
        "payment_frozen_account",
        "validate_payment_request",
        "account_frozen",
        "validation_error",
        account=ACCOUNT | {"status": "frozen"},
    ),
    Case("payment_all_of_the_balance", "payment_processing", PAYMENT, {"amount_cents": 50_000}),
]
