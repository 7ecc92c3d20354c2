"""A schedule of the laboratory, and two processes that fire it at times that a test sets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import pytest

from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.services.schedule_firing import ScheduleFiring
from tasker.services.submission.submit import DraftFactory
from tasker.template import compile_text
from tests.support.engine_fixture import Lab

Rows = list[tuple[Any, ...]]
DAILY = '[{name: daily, cron: "0 2 * * *"}]'


@dataclass
class Process:
    """One process that fires schedules, over a connection of its own."""

    connection: Connection
    firing: ScheduleFiring


class Schedules:
    """A template `lab/report` with one step, its schedules, and two processes at a time that the test sets."""

    def __init__(self, lab: Lab, processes: Sequence[Process]) -> None:
        self.lab, self.one, self.two = lab, processes[0], processes[1]
        self.moment = ""

    async def at(self, moment: str) -> None:
        """Set the clock of the database."""
        self.moment = moment
        setting = "select set_config('tasker.now', %s, false)"
        self.lab.one.rows(setting, moment)
        for process in (self.one, self.two):
            await process.connection.execute(setting, (moment,))

    async def register(self, schedules: str, version: str = "1.0.0", more: str = "") -> None:
        text = (
            f"name: report\nnamespace_name: {self.lab.namespace}\nversion: {version}\n{more}"
            f"schedules: {schedules}\nsteps: [{{name: only, handler: h.only}}]\n"
        )
        compiled = compile_text(text)
        assert compiled.ok, compiled.diagnostics
        await PlanStore(self.one.connection).register(compiled.plans[0], force=True)

    def due(self) -> list[str]:
        """The schedules that the engine names as due."""
        return list(self.lab.one.call("due", self.lab.one.args()).get("schedules", ()))

    async def look(self, process: Process | None = None) -> float | None:
        """Fire what is due, as a process does that looks."""
        return await (process or self.one).firing.fire_all(self.due())

    async def go(self, *moments: str) -> None:
        for moment in moments:
            await self.at(moment)
            await self.look()

    def history(self) -> Rows:
        query = """select to_char(fire_at at time zone 'UTC', 'DD HH24:MI'), kind, outcome from tasker.schedule_fires
          order by fire_at"""
        return [tuple(row) for row in self.lab.one.rows(query)]

    def contexts(self) -> list[Mapping[str, Any]]:
        query = "select d.context from tasker.tasks t join tasker.task_details d using (task_uuid) order by t.task_uuid"
        return [row[0] for row in self.lab.one.rows(query)]

    def next_at(self) -> str | None:
        value = self.lab.one.value("select next_at from tasker.schedules")
        return None if value is None else value.astimezone(UTC).strftime("%d %H:%M")

    def change(self, change: str, **more: Any) -> dict[str, Any]:
        target = {"namespace": self.lab.namespace, "template": "report", "name": "daily"}
        return self.lab.one.core("change_schedule", {"change": change, "actor": "ann", "reason": "", **target, **more})

    def finish(self) -> None:
        """Complete every open task."""
        self.lab.one.run_all()


@pytest.fixture
async def schedules(lab: Lab) -> AsyncIterator[Schedules]:
    connections = [Connection(lab.url), Connection(lab.url)]
    made = []
    for connection in connections:
        engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
        made.append(Process(connection, ScheduleFiring(engine, PlanStore(connection), DraftFactory(new_task_uuid))))
    yield Schedules(lab, made)
    for connection in connections:
        await connection.close()
