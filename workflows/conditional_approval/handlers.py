"""Approval handlers as classes. The decision reads nothing but its inputs, so that it always decides the same."""

from __future__ import annotations

from tasker.step_handler import DecisionHandler, StepHandler
from tasker.types import StepContext, StepHandlerResult

APPROVALS = ("auto_approve", "manager_approval", "finance_review")


class ValidateRequestHandler(StepHandler):
    """Refuse amounts above every approval limit."""

    handler_name = "conditional_approval.validate_request"

    def call(self, context: StepContext) -> StepHandlerResult:
        amount = context.get_input("amount")
        if amount <= 0:
            return self.failure(
                f"the amount must be above 0, not {amount}",
                error_type="validation_error",
                retryable=False,
                error_code="invalid_amount",
            )
        return self.success({"amount": amount, "requester": context.get_input("requester"), "valid": True})


class RoutingDecisionHandler(DecisionHandler):
    """Names the steps to create. A limit belongs to the higher tier: exactly 1000 needs the manager."""

    handler_name = "conditional_approval.routing_decision"

    def call(self, context: StepContext) -> StepHandlerResult:
        amount = context.get_dependency_field("validate_request", "amount")
        route_type, steps = self.route(amount, context.get_config("manager_from"), context.get_config("finance_from"))
        return self.decision_success(steps, routing_context={"route_type": route_type, "amount": amount})

    @staticmethod
    def route(amount: float, manager_from: float, finance_from: float) -> tuple[str, list[str]]:
        if amount < manager_from:
            return "auto", ["auto_approve"]
        if amount < finance_from:
            return "manager", ["manager_approval"]
        return "dual", ["manager_approval", "finance_review"]


class AutoApproveHandler(StepHandler):
    """Approve small amounts automatically."""

    handler_name = "conditional_approval.auto_approve"

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"approved": True, "approver": "policy"})


class ReviewHandler(StepHandler):
    """Stands in for a person; `simulate.rejected_by` makes that person say no."""

    handler_name = "conditional_approval.review"

    def call(self, context: StepContext) -> StepHandlerResult:
        reviewer = context.get_config("reviewer")
        rejected_by = context.get_input_or("simulate", {}).get("rejected_by", [])
        return self.success({"approved": reviewer not in rejected_by, "approver": reviewer})


class FinalizeApprovalHandler(StepHandler):
    """Reads the approvals that exist; a step that was not created has no result."""

    handler_name = "conditional_approval.finalize_approval"

    def call(self, context: StepContext) -> StepHandlerResult:
        results = [context.get_dependency_result(name) for name in APPROVALS]
        approvals = [result for result in results if result is not None]
        return self.success(
            {
                "approved": all(approval["approved"] for approval in approvals),
                "approvers": [approval["approver"] for approval in approvals],
                "route_type": context.get_dependency_field("routing_decision", "route_type"),
                "amount": context.get_input("amount"),
            }
        )
