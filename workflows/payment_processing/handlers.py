"""Payment handlers as classes: failures are returned with `self.failure`, the gateway is a fake driven by the input."""

from __future__ import annotations

from typing import Any

from tasker.domain_events import BasePublisher, StepEventContext
from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult

Json = dict[str, Any]


class NetworkTimeout(Exception):
    """The gateway did not answer; it is unknown whether it did the work."""


class Refused(Exception):
    """The gateway said no. `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class FakeGateway:
    """Answers from the input alone, so that a run can be repeated. A real gateway keeps records by idempotency key."""

    def __init__(self, payment: Json, attempt: int, idempotency_key: str) -> None:
        self.payment = payment
        self.attempt = attempt
        self.idempotency_key = idempotency_key
        self.simulate: Json = payment.get("simulate") or {}

    @classmethod
    def for_step(cls, context: StepContext) -> FakeGateway:
        return cls(context.input_data, context.retry_count + 1, str(context.step_uuid))

    def authorize(self) -> Json:
        if self.attempt <= self.simulate.get("network_timeouts", 0):
            raise NetworkTimeout
        if self.payment["method"].get("number", "").endswith("0000"):
            raise Refused("invalid_card")
        if self.payment["account"]["balance_cents"] < self.payment["amount_cents"]:
            raise Refused("insufficient_funds")
        return {"code": f"AUTH-{self.payment['payment_id']}", "transaction_id": f"GTW-{self.payment['payment_id']}"}

    def find_capture(self) -> Json | None:
        """The record of an earlier capture under the same key."""
        captured = self.simulate.get("capture_reply_lost") and self.attempt > 1
        return self._capture_record() if captured else None

    def capture(self, authorization_code: str) -> Json:
        if self.simulate.get("capture_reply_lost"):
            raise NetworkTimeout
        return self._capture_record() | {"authorization_code": authorization_code}

    def _capture_record(self) -> Json:
        return {"transaction_id": f"CAP-{self.payment['payment_id']}", "amount_cents": self.payment["amount_cents"]}


class ValidatePaymentRequestHandler(StepHandler):
    """Refuses what no gateway needs to see."""

    handler_name = "payments.validate_payment_request"

    def call(self, context: StepContext) -> StepHandlerResult:
        amount, account = context.get_input("amount_cents"), context.get_input("account")
        if amount <= 0:
            return self._refuse("amount_cents must be above 0", "invalid_amount")
        if account.get("status") == "frozen":
            return self._refuse(f"account {account['id']} is frozen", "account_frozen")
        return self.success({"payment_id": context.get_input("payment_id"), "amount_cents": amount, "valid": True})

    def _refuse(self, message: str, code: str) -> StepHandlerResult:
        return self.failure(message, error_type="validation_error", retryable=False, error_code=code)


class CheckFraudHandler(StepHandler):
    """Two rules: how much at once, how often per hour. The limits are in the template."""

    handler_name = "payments.check_fraud"

    def call(self, context: StepContext) -> StepHandlerResult:
        broken = self.broken_rules(context)
        if broken:
            return self.failure(
                f"the payment broke {', '.join(broken)}",
                error_type="permanent_error",
                retryable=False,
                error_code="fraud_detected",
                metadata={"rules": broken},
            )
        return self.success({"approved": True, "rules_checked": 2})

    def broken_rules(self, context: StepContext) -> list[str]:
        per_hour = context.get_input("account").get("payments_last_hour", 0)
        rules = {
            "transaction_limit": context.get_input("amount_cents") > context.get_config("limit_cents"),
            "velocity": per_hour >= context.get_config("max_per_hour"),
        }
        return [name for name, is_broken in rules.items() if is_broken]


class AuthorizePaymentHandler(StepHandler):
    """A timeout is worth another attempt; a refusal is not."""

    handler_name = "payments.authorize_payment"

    async def call(self, context: StepContext) -> StepHandlerResult:
        try:
            authorization = FakeGateway.for_step(context).authorize()
        except NetworkTimeout:
            return self.failure("the gateway did not answer", error_type="timeout", error_code="network_timeout")
        except Refused as refusal:
            return self._refused(refusal.code)
        return self.success(
            {"authorization_code": authorization["code"], "gateway_transaction_id": authorization["transaction_id"]}
        )

    def _refused(self, code: str) -> StepHandlerResult:
        return self.failure(
            f"the gateway refused the payment: {code}",
            error_type="permanent_error",
            retryable=False,
            error_code=code,
            metadata={"requires_manual_intervention": code == "invalid_card"},
        )


class CapturePaymentHandler(StepHandler):
    """Looks for a capture under this step's id first: after a lost answer the money has already moved."""

    handler_name = "payments.capture_payment"

    async def call(self, context: StepContext) -> StepHandlerResult:
        gateway = FakeGateway.for_step(context)
        existing = gateway.find_capture()
        if existing:
            return self.success(existing | {"already_captured": True})
        try:
            code = context.get_dependency_field("authorize_payment", "authorization_code")
            return self.success(gateway.capture(code) | {"already_captured": False})
        except NetworkTimeout:
            return self.failure(
                "the answer to the capture was lost", error_type="timeout", error_code="network_timeout"
            )


class CapturePublisher(BasePublisher):
    """What others learn of a capture: what they need, and no word of the authorization."""

    @property
    def publisher_name(self) -> str:
        return "payments.capture"

    def transform_payload(self, ctx: StepEventContext) -> Json:
        result = ctx.result or {}
        return {name: result.get(name) for name in ("transaction_id", "amount_cents")}

    def additional_metadata(self, ctx: StepEventContext) -> Json:
        return {"payment_provider": "fake gateway"}


class RecordTransactionHandler(StepHandler):
    """Two ledger entries that sum to zero; their ids follow from the capture, so writing twice writes once."""

    handler_name = "payments.record_transaction"

    def call(self, context: StepContext) -> StepHandlerResult:
        capture = context.get_dependency_result("capture_payment")
        account = context.get_input("account")["id"]
        amount = capture["amount_cents"]
        return self.success(
            {
                "entries": [
                    {"id": f"{capture['transaction_id']}-D", "account": account, "cents": -amount},
                    {"id": f"{capture['transaction_id']}-C", "account": "merchant", "cents": amount},
                ]
            }
        )


class SendNotificationHandler(StepHandler):
    """The webhook to the merchant and the receipt to the customer."""

    handler_name = "payments.send_notification"

    def call(self, context: StepContext) -> StepHandlerResult:
        amount, currency = context.get_input("amount_cents"), context.get_input("currency")
        return self.success(
            {
                "webhook": {"event": "payment.captured", "payment_id": context.get_input("payment_id")},
                "receipt": f"{amount / 100:.2f} {currency}",
            }
        )
