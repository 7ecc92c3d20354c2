"""Every example workflow with inputs, and what must come of them. The figures were worked out by hand."""

from __future__ import annotations

from tests.acceptance.examples.cases_approval import APPROVAL_CASES, NESTED_CASES, ROUTING_CASES
from tests.acceptance.examples.cases_batch import CHECKPOINT_CASES, COMBINED_CASES, VIDEO_CASES
from tests.acceptance.examples.cases_built_in import REMINDER_CASES
from tests.acceptance.examples.cases_commerce import CHECKOUT_CASES, ORDER_CASES
from tests.acceptance.examples.cases_math import MATH_CASES
from tests.acceptance.examples.cases_payments import PAYMENT_CASES
from tests.acceptance.examples.cases_services import ETL_CASES, REGISTRATION_CASES, REPORT_CASES, SYNC_CASES
from tests.acceptance.examples.workflow_case import WORKFLOWS

WAIT_FOR_OTHERS = ("expense_approval", "payment_capture")
"""Examples that do not end without a person or an event; each has a test of its own."""
FOLDERS = sorted(path.parent for path in WORKFLOWS.glob("*/workflow.yaml") if path.parent.name not in WAIT_FOR_OTHERS)
WITH_HANDLERS = [folder for folder in FOLDERS if (folder / "handlers.py").is_file()]

CASES = [
    *MATH_CASES,
    *ORDER_CASES,
    *CHECKOUT_CASES,
    *PAYMENT_CASES,
    *ETL_CASES,
    *REGISTRATION_CASES,
    *SYNC_CASES,
    *APPROVAL_CASES,
    *NESTED_CASES,
    *ROUTING_CASES,
    *COMBINED_CASES,
    *CHECKPOINT_CASES,
    *REPORT_CASES,
    *VIDEO_CASES,
    *REMINDER_CASES,
]
