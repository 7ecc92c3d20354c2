"""Log lines that need the database cost nothing where nobody wants them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tasker.db.session import Rows
from tasker.engine.calls import Engine
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tests.support.engine_fixture import Direct, Lab


class Asked(Direct):
    """A session that keeps what it is asked."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab.one)
        self.statements: list[str] = []

    async def execute(self, statement: str, params: Any = None) -> Rows:
        self.statements.append(str(params))
        return await super().execute(statement, params)


async def test_where_nobody_wants_the_lines_nothing_is_asked_for_them(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    connection = Asked(lab)
    engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
    (task,) = lab.submit(lab.chain(1), {})
    with caplog.at_level(logging.WARNING, "tasker"):
        await engine.call("cancel", {"task": task})

    assert lab.task(task).state == "cancelled"
    (asked,) = connection.statements
    assert "tell_enqueued" not in asked
