"""Who is not let through is a warning, and a flood of them is a line a minute with its count."""

from __future__ import annotations

import logging

import pytest

from tasker.errors import NotAuthenticated, NotPermitted, TaskerError
from tasker.server.auth.caller import RefusedCallers

UNKNOWN, DENIED = NotAuthenticated("unknown API key"), NotPermitted("Missing required permission: tasks:read")


def test_the_first_is_told_at_once_and_the_others_of_a_minute_together(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    refused = RefusedCallers(lambda: now)

    def note(error: TaskerError, place: str, caller: str | None = None) -> None:
        refused.note(error, request=place, address="192.0.2.7", caller=caller)

    caplog.set_level(logging.WARNING, "tasker.api")
    for now in (0.0, 1.0, 59.0, 60.0, 61.0):
        note(UNKNOWN, f"at {now:g}")
    note(DENIED, "another", "ada")
    refused.close()
    refused.close()

    who = "from=192.0.2.7"
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("WARNING", f"credentials_refused count=1 request=at 0 {who}: unknown API key"),
        ("WARNING", f"credentials_refused count=3 request=at 60 {who}: unknown API key"),
        ("WARNING", f"permission_denied count=1 request=another {who} caller='ada': {DENIED.message}"),
        ("WARNING", f"credentials_refused count=1 request=at 61 {who}: unknown API key"),
    ]


def test_each_of_them_is_told_to_who_looks_for_a_mistake(caplog: pytest.LogCaptureFixture) -> None:
    refused = RefusedCallers(lambda: 0.0)
    caplog.set_level(logging.DEBUG, "tasker.api")
    for place in range(5):
        refused.note(UNKNOWN, request=str(place), address="192.0.2.7", caller=None)
    assert [line.levelname for line in caplog.records].count("DEBUG") == 5
