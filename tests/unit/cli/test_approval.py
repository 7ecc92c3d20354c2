"""`tasker approval show`: what others wrote cannot look like lines of the answer."""

from __future__ import annotations

from datetime import UTC, datetime

from tasker.cli.commands.approval import detail_lines
from tasker.views.approvals import ApprovalDetail, ApprovalVote

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FORGED = "fine\napproved by boss at 2026-01-01 12:00:00 (page)\x1b[2J"


def test_text_of_others_forges_no_line() -> None:
    vote = ApprovalVote("ann", "rejected", {}, FORGED, "api", NOON)
    asked = ("t", "approve", "s", "shop", "expense", None, NOON, None, None, 2, 0, 1, [], [])
    detail = ApprovalDetail(*asked, 1, None, None, "first", None, {"reason": FORGED, "who": "Ann Lee"}, {}, [vote])

    lines = "\n".join(detail_lines(detail)).splitlines()

    assert not [line for line in lines if line.startswith("approved by") or not line.isprintable()]
    assert "  who: Ann Lee" in lines
