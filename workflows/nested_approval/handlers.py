"""Two decisions, one below the other. The route functions are plain rules that can be tested without a workflow."""

from __future__ import annotations

from typing import Any

from tasker.handlers.decisions import Decision
from tasker.step_handler import decision_handler, depends_on, inputs, step_handler
from tasker.types import StepContext

Result = dict[str, Any]
STRICT_JURISDICTIONS = ("EU", "UK", "APAC")
APPROVALS = (
    "emergency_approval",
    "standard_manager_approval",
    "senior_manager_approval",
    "legal_review",
    "fraud_investigation",
    "jurisdictional_check",
)


@step_handler("approval_workflows.validate_request")
@inputs("amount", "jurisdiction")
def validate_request(amount: float, jurisdiction: str) -> Result:
    return {"amount": amount, "jurisdiction": jurisdiction.upper()}


@step_handler("approval_workflows.assess_risk")
@inputs("risk_score")
async def assess_risk(risk_score: int) -> Result:
    return {"risk_score": risk_score}


@decision_handler("approval_workflows.primary_routing")
@depends_on(request="validate_request", risk="assess_risk")
@inputs("emergency")
def primary_routing(request: Result, risk: Result, emergency: bool | None) -> Decision:
    route_type, steps = primary_route(request["amount"], risk["risk_score"], bool(emergency))
    return Decision.route(steps, route_type=route_type, amount=request["amount"], risk_score=risk["risk_score"])


def primary_route(amount: float, risk_score: int, emergency: bool) -> tuple[str, list[str]]:
    """An emergency below 10,000, a low risk below 5,000, or everything else."""
    if emergency and amount < 10_000:
        return "emergency", ["emergency_approval"]
    if risk_score < 30 and amount < 5_000:
        return "standard", ["standard_manager_approval"]
    return "senior", ["senior_manager_approval", "compliance_routing"]


@decision_handler("approval_workflows.compliance_routing")
@depends_on(request="validate_request", risk="assess_risk")
def compliance_routing(request: Result, risk: Result) -> Decision:
    """Reads results from two levels up: a step sees everything above it."""
    checks = compliance_checks(request["amount"], risk["risk_score"], request["jurisdiction"])
    if not checks:
        return Decision.skip("no_compliance_requirements")
    return Decision.route(checks, compliance_level="enhanced", checks_required=checks)


def compliance_checks(amount: float, risk_score: int, jurisdiction: str) -> list[str]:
    due = {
        "legal_review": amount >= 50_000,
        "fraud_investigation": risk_score >= 70,
        "jurisdictional_check": jurisdiction in STRICT_JURISDICTIONS,
    }
    return [step for step, is_due in due.items() if is_due]


@step_handler("approval_workflows.approve")
@inputs("amount")
async def approve(amount: float) -> Result:
    """Stands in for a person; serves six steps."""
    return {"approved": True, "amount": amount}


@step_handler("approval_workflows.finalize_approval")
@depends_on(route="primary_routing")
def finalize_approval(route: Result, context: StepContext) -> Result:
    given = [name for name in APPROVALS if context.get_dependency_result(name) is not None]
    return {"status": "approved", "route_type": route["route_type"], "approvals": given}
