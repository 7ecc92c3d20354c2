"""What is kept of operators' actions, as it is written."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.services.audit import AuditLog

Written = list[tuple[bool, int | None]]


def rows_written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Of each row of what is done from now on: whether it was part of a transaction, and its status then."""
    found: Written = []
    asked = AuditLog.asked

    async def noted(self: AuditLog, action: Any, status: int | None = None) -> str:
        found.append((getattr(self._connection, "transaction", None) is not None, status))
        return await asked(self, action, status)

    monkeypatch.setattr(AuditLog, "asked", noted)
    return found
