"""The customer ETL with its quality limit, and the registration with its clean-up."""

from __future__ import annotations

from typing import Any

from tests.acceptance.examples.workflow_case import Case, Failed

ETL = (
    "extract_customer_profiles",
    "extract_transaction_history",
    "enrich_customer_data",
    "join_transactions",
    "load_to_warehouse",
    "generate_summary_report",
)


def poor_quality(id: str, records: int, every: int, processed: int, skipped: int, error_rate: float) -> Case:
    """A source with too many broken rows."""
    return Case(
        id,
        "customer_etl",
        ETL,
        {"total_records": records, "simulate": {"malformed_every": every}},
        attempts={"enrich_customer_data": 1},
        waiting=ETL[3:],
        failed=Failed(
            "enrich_customer_data",
            "business_logic_error",
            "data_quality_issue",
            metadata={"processed": processed, "skipped": skipped, "error_rate": error_rate},
        ),
    )


REPORT = ("count_orders", "write_report")
REPORT_CASES = [
    Case(
        "report",
        "nightly_report",
        REPORT,
        results={
            "count_orders": {"orders": 146, "returns": 5},
            "write_report": {"file": "reports/2026-01-30.txt", "text": "146 orders on 2026-01-30\n5 returns"},
        },
    ),
    Case(
        "brief_report",
        "nightly_report",
        REPORT,
        {"kind": "brief", "since": "2026-01-29T02:30:00+01:00"},
        holds={"write_report": {"text": "146 orders on 2026-01-30"}},
    ),
]

ETL_CASES = [
    Case(
        "etl",
        "customer_etl",
        ETL,
        results={
            "extract_transaction_history": {"day": "2025-06-01", "transactions": 1_500},
            "enrich_customer_data": {
                "processed": 980,
                "skipped": 20,
                "error_rate": 0.0204,
                "segments": {"middle": 492, "senior": 295, "young": 193},
            },
            "load_to_warehouse": {"table": "customer_segments/day=2025-06-01", "rows_loaded": 3},
            "generate_summary_report": {
                "partitions": 10,
                "extracted": 1_000,
                "processed": 980,
                "skipped": 20,
                "transactions_per_customer": 1.531,
                "loaded_into": "customer_segments/day=2025-06-01",
            },
        },
    ),
    Case(
        "etl_api_timeouts",
        "customer_etl",
        ETL,
        {"simulate": {"api_timeouts": 2}},
        holds={"enrich_customer_data": {"processed": 1_000, "skipped": 0}},
        attempts={"enrich_customer_data": 3},
    ),
    Case(
        "etl_api_never_answers",
        "customer_etl",
        ETL,
        {"simulate": {"api_timeouts": 3}},
        attempts={"enrich_customer_data": 3},
        waiting=ETL[3:],
        failed=Failed("enrich_customer_data", "timeout", "api_timeout", retryable=True),
    ),
    poor_quality("etl_a_fifth_is_broken", 1_000, 5, 800, 200, 0.25),
    poor_quality("etl_just_above_a_tenth", 100, 10, 90, 10, 0.1111),
    poor_quality("etl_nothing_is_usable", 10, 1, 0, 10, 10.0),
    Case(
        "etl_exactly_a_tenth",
        "customer_etl",
        ETL,
        {"total_records": 110, "simulate": {"malformed_every": 11}},
        holds={"enrich_customer_data": {"processed": 100, "skipped": 10, "error_rate": 0.1}},
    ),
    Case(
        "etl_no_customers",
        "customer_etl",
        ETL,
        {"total_records": 0},
        holds={
            "enrich_customer_data": {"processed": 0, "skipped": 0, "error_rate": 0.0, "segments": {}},
            "generate_summary_report": {"partitions": 0, "extracted": 0},
        },
    ),
]

REGISTRATION = (
    "create_auth_account",
    "create_user_profile",
    "setup_notification_preferences",
    "track_user_signup",
    "send_welcome_email",
)
SIGNUP = {"event": "user.signed_up", "user_id": "USR-88", "traced": True}


def abandoned(id: str, step: str, simulate: dict[str, bool], error: tuple[str, str], cleanup: dict[str, Any]) -> Case:
    """A registration that ends at `step` and is cleaned up after."""
    is_profile = step == "create_user_profile"
    return Case(
        id,
        "user_registration",
        REGISTRATION,
        {"simulate": simulate},
        results={} if is_profile else {"track_user_signup": SIGNUP},
        attempts={step: 1 if is_profile else 2},
        waiting=REGISTRATION[2:] if is_profile else ("send_welcome_email",),
        failed=Failed(step, *error, retryable=not is_profile, metadata={"compensation": cleanup}),
    )


DELETED = {"action": "delete_auth_account", "subject": "auth-USR-88"}
DEACTIVATED = {"action": "deactivate_user", "subject": "USR-88"}
BY_HAND = {"compensated": False, "requires_manual_cleanup": True}
DUPLICATE = ("business_logic_error", "duplicate_email")
DOWN = ("service_unavailable", "service_unavailable")

REGISTRATION_CASES = [
    Case(
        "registration",
        "user_registration",
        REGISTRATION,
        results={
            "create_auth_account": {"account_id": "auth-USR-88", "login": "new.user@example.com"},
            "create_user_profile": {"profile_id": "profile-USR-88", "user_id": "USR-88"},
            "setup_notification_preferences": {"channels": ["email", "newsletter"]},
            "track_user_signup": SIGNUP,
            "send_welcome_email": {
                "to": "new.user@example.com",
                "subject": "Welcome",
                "links": ["getting-started", "email", "newsletter"],
            },
        },
    ),
    Case(
        "registration_profile_retried",
        "user_registration",
        REGISTRATION,
        {"simulate": {"profile_unavailable": 2}},
        attempts={"create_user_profile": 3},
    ),
    abandoned(
        "registration_duplicate_email",
        "create_user_profile",
        {"duplicate_email": True},
        DUPLICATE,
        DELETED | {"compensated": True},
    ),
    abandoned(
        "registration_duplicate_email_cleanup_fails",
        "create_user_profile",
        {"duplicate_email": True, "cleanup_fails": True},
        DUPLICATE,
        DELETED | BY_HAND,
    ),
    abandoned(
        "registration_notifications_down",
        "setup_notification_preferences",
        {"notifications_down": True},
        DOWN,
        DEACTIVATED | {"compensated": True},
    ),
    abandoned(
        "registration_notifications_down_cleanup_fails",
        "setup_notification_preferences",
        {"notifications_down": True, "cleanup_fails": True},
        DOWN,
        DEACTIVATED | BY_HAND,
    ),
]

SYNC_CASES = [
    Case(
        "api_sync",
        "api_sync",
        ("fetch_contacts", "upload_contacts", "confirm"),
        results={"confirm": {"message": "3 contacts of acme are up to date"}},
        holds={"upload_contacts": {"uploaded": 3}},
    ),
    Case(
        "tenant_import",
        "tenant_import",
        ("read_rows", "store_rows", "report"),
        results={"report": {"message": "3 rows of contacts.csv are stored for acme"}},
        holds={"store_rows": {"stored": 3}},
    ),
]
