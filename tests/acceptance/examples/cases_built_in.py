"""A workflow without handlers: the reminders that it writes, and whom it tells. Nothing is sent in a dry run."""

from __future__ import annotations

from tests.acceptance.examples.workflow_case import Case, Failed

ABOVE = ("overdue", "check", "letters.each")
BELOW = ("written", "route", "send.when", "summary")


def invoice(number: str, total: float, due: str = "2026-01-31", paid: bool = False) -> dict[str, object]:
    """An invoice that is overdue unless it is paid or due later than 2026-02-28."""
    return {"id": number, "total": total, "due": due, "paid": paid}


REMINDER_CASES = [
    Case(
        "reminders",
        "invoice_reminder",
        (*ABOVE, "letters_001", "letters_002", *BELOW, "escalate"),
        results={
            "summary": {
                "customer": "C-17",
                "owed": 1050.75,
                "sent": 0,
                "escalated": True,
                "letters": [
                    {
                        "subject": "Reminder: invoice I-214",
                        "text": "Dear Ada Lovelace: 920.5 EUR were due on 2026-01-31.",
                    },
                    {
                        "subject": "Reminder: invoice I-230",
                        "text": "Dear Ada Lovelace: 130.25 EUR were due on 2026-02-14.",
                    },
                ],
            }
        },
        holds={
            "route": {"rule": 1, "reason": "1050.75 EUR are overdue"},
            "send.when": {"rule": None},
        },
    ),
    Case(
        "reminders_firm_and_not_escalated",
        "invoice_reminder",
        (*ABOVE, "letters_001", *BELOW),
        {
            "customer": {"id": "C-18", "name": "Grace Hopper", "email": "grace@example.com"},
            "invoices": [invoice("I-1", 999.99), invoice("I-2", 50, paid=True), invoice("I-3", 50, due="2026-03-01")],
        },
        holds={
            "route": {"rule": 2},
            "letters_001": {
                "results": [
                    {"subject": "Reminder: invoice I-1", "text": "Grace Hopper: 999.99 EUR were due on 2026-01-31."}
                ]
            },
            "summary": {"owed": 999.99, "escalated": False},
        },
    ),
    Case(
        "reminders_none",
        "invoice_reminder",
        (*ABOVE, "letters_001", *BELOW),
        {"invoices": [invoice("I-1", 10, paid=True)]},
        holds={"summary": {"owed": 0, "letters": [], "sent": 0}},
    ),
    Case(
        "reminders_impossible_total",
        "invoice_reminder",
        ABOVE,
        {"invoices": [invoice("I-1", 0)]},
        attempts={"check": 1},
        waiting=("letters.each",),
        failed=Failed("check", "invalid_data", ""),
    ),
]
