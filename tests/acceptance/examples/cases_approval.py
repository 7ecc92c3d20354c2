"""Approvals at each side of every limit."""

from __future__ import annotations

from tests.acceptance.examples.workflow_case import Case, Failed

APPROVED_BY = {
    "auto": {"auto_approve": "policy"},
    "manager": {"manager_approval": "manager"},
    "dual": {"manager_approval": "manager", "finance_review": "finance"},
}


def approval(amount: float, route_type: str) -> Case:
    """A request of `amount` and the branches that it gets."""
    branches = APPROVED_BY[route_type]
    return Case(
        f"approval_of_{amount}",
        "conditional_approval",
        ("validate_request", "routing_decision", *branches, "finalize_approval"),
        {"amount": amount},
        {
            "validate_request": {"amount": amount, "requester": "purchasing", "valid": True},
            **{step: {"approved": True, "approver": approver} for step, approver in branches.items()},
            "finalize_approval": {
                "approved": True,
                "approvers": list(branches.values()),
                "route_type": route_type,
                "amount": amount,
            },
        },
        holds={"routing_decision": {"route_type": route_type, "amount": amount}},
    )


def invalid_amount(amount: float) -> Case:
    """Nothing below the decision is ever created."""
    return Case(
        f"approval_of_{amount}",
        "conditional_approval",
        ("validate_request", "routing_decision"),
        {"amount": amount},
        attempts={"validate_request": 1},
        waiting=("routing_decision",),
        failed=Failed("validate_request", "validation_error", "invalid_amount"),
    )


APPROVAL_CASES = [
    *(approval(amount, "auto") for amount in (0.01, 500, 999.99)),
    *(approval(amount, "manager") for amount in (1_000, 2_500, 3_000, 4_999.99)),
    *(approval(amount, "dual") for amount in (5_000, 10_000)),
    *(invalid_amount(amount) for amount in (0, -5)),
    Case(
        "approval_finance_says_no",
        "conditional_approval",
        ("validate_request", "routing_decision", "manager_approval", "finance_review", "finalize_approval"),
        {"amount": 7_000, "simulate": {"rejected_by": ["finance"]}},
        holds={"finalize_approval": {"approved": False, "approvers": ["manager", "finance"]}},
    ),
]

TO_PRIMARY = ("validate_request", "assess_risk", "primary_routing")


def tiers(
    name: str,
    amount: float,
    risk: int,
    place: str,
    route_type: str,
    approvals: tuple[str, ...],
    emergency: bool = False,
) -> Case:
    """A request and the approvals and checks that it gets."""
    nested = ("compliance_routing",) if route_type == "senior" else ()
    return Case(
        f"tiers_{name}",
        "nested_approval",
        (*TO_PRIMARY, *approvals, *nested, "finalize_approval"),
        {"amount": amount, "risk_score": risk, "jurisdiction": place, "emergency": emergency},
        {
            **{step: {"approved": True, "amount": amount} for step in approvals},
            "finalize_approval": {"status": "approved", "route_type": route_type, "approvals": list(approvals)},
        },
        holds={"primary_routing": {"route_type": route_type}},
    )


EMERGENCY, STANDARD, SENIOR = ("emergency_approval",), ("standard_manager_approval",), ("senior_manager_approval",)
LEGAL, FRAUD, PLACE = "legal_review", "fraud_investigation", "jurisdictional_check"

NESTED_CASES = [
    tiers("emergency", 5_000, 20, "US", "emergency", EMERGENCY, emergency=True),
    tiers("emergency_whatever_the_risk", 9_999.99, 90, "EU", "emergency", EMERGENCY, emergency=True),
    tiers("emergency_of_10000_is_senior", 10_000, 20, "US", "senior", SENIOR, emergency=True),
    tiers("standard", 3_000, 25, "US", "standard", STANDARD),
    tiers("risk_29_is_standard", 4_999.99, 29, "US", "standard", STANDARD),
    tiers("risk_30_is_senior", 1_000, 30, "US", "senior", SENIOR),
    tiers("amount_5000_is_senior", 5_000, 10, "US", "senior", SENIOR),
    tiers("all_checks", 75_000, 80, "EU", "senior", (*SENIOR, LEGAL, FRAUD, PLACE)),
    tiers("no_checks", 49_999.99, 69, "US", "senior", SENIOR),
    tiers("legal_from_50000", 50_000, 69, "US", "senior", (*SENIOR, LEGAL)),
    tiers("fraud_from_70", 20_000, 70, "US", "senior", (*SENIOR, FRAUD)),
    tiers("uk", 20_000, 40, "UK", "senior", (*SENIOR, PLACE)),
    tiers("apac_in_small_letters", 20_000, 40, "apac", "senior", (*SENIOR, PLACE)),
]


ROUTED = ("score", "route", "reserve.each", "reserve_001", "reserve_002", "reserve_003", "wrap.when", "confirm")
ROUTING_CASES = [
    Case(
        "routed_small",
        "order_routing",
        (*ROUTED, "wrap"),
        results={
            "confirm": {
                "text": "order ORD-7: 2 lines reserved, 1 missing",
                "reservations": ["RES-ORD-7-0-DESK-1x1", "RES-ORD-7-2-LAMP-3x2"],
                "checked": False,
                "wrapped": True,
            }
        },
        holds={
            "route": {"rule": 3, "reason": "small and harmless"},
            "wrap.when": {"reason": "input.gift && steps.score.total > 20.0 is true"},
        },
    ),
    Case(
        "routed_to_the_manager_without_a_gift",
        "order_routing",
        ("score", "route", "manual_check", "reserve.each", "reserve_001", "wrap.when", "confirm"),
        {"gift": False, "lines": [{"sku": "DESK-1", "quantity": 3, "price": 480}]},
        holds={"route": {"rule": 2, "reason": "total 1440"}, "confirm": {"checked": True, "wrapped": False}},
    ),
    Case(
        "routed_to_both_checks",
        "order_routing",
        ("score", "route", "manual_check", "fraud_check", "reserve.each", "reserve_001", "wrap.when", "confirm"),
        {"gift": False, "lines": [{"sku": "NUT-1", "quantity": 60, "price": 0}]},
        holds={"route": {"rule": 1, "reason": "risk 95"}, "fraud_check": {"checked_by": "fraud team"}},
    ),
    Case(
        "routed_without_lines",
        "order_routing",
        ("score", "route", "reserve.each", "reserve_001", "wrap.when", "confirm"),
        {"lines": []},
        holds={"reserve_001": {"results": []}, "confirm": {"text": "order ORD-7: 0 lines reserved, 0 missing"}},
    ),
]
