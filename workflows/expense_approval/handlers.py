"""Handlers of the expense approval example."""

from __future__ import annotations

from typing import Any

from tasker.step_handler import inputs, step_handler


@step_handler("expense_approval.summarize")
@inputs("approved", "votes")
def summarize(approved: bool, votes: list[dict[str, Any]]) -> dict[str, Any]:
    if not votes:
        return {"approved": False, "text": "nobody decided in time"}
    word = "approved" if approved else "rejected"
    votes = [vote for vote in votes if vote["decision"] == word]
    comments = "".join(f": {vote['comment']}" for vote in votes if vote["comment"])
    return {"approved": approved, "text": f"{word} by {' and '.join(vote['by'] for vote in votes)}{comments}"}


@step_handler("expense_approval.pay")
@inputs("employee", "amount")
def pay(employee: str, amount: float) -> dict[str, Any]:
    return {"paid": amount, "to": employee}


@step_handler("expense_approval.tell")
@inputs("employee", "text")
def tell(employee: str, text: str) -> dict[str, Any]:
    return {"told": employee, "text": text}
