"""Tasks whose steps fail: a template in YAML, and the outcome of each step by its name."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tasker.handlers.claims import Failure
from tasker.template.compile import compile_text
from tasker.template.plan import Plan
from tests.integration.engine.protocol.conftest import Orchestra, result_of
from tests.support.engine_fixture import Item, Lab

_numbers = itertools.count(1)
BROKEN = Failure(message="it broke", error_type="ValueError", retryable=False)


def template(lab: Lab, steps: str, top: str = "") -> Plan:
    """Compile steps in flow style, one in each line."""
    lines = "\n".join(f"  - {{handler: h, {line.strip()}}}" for line in steps.strip().splitlines())
    text = f"name: order{next(_numbers)}\nnamespace: {lab.namespace}\nversion: 1.0.0\n{top}\nsteps:\n{lines}\n"
    result = compile_text(text)
    assert result.ok, result.diagnostics
    return result.plans[0]


@dataclass
class Story:
    """A task that runs to its end, one step after the other."""

    orchestra: Orchestra
    plan: Plan
    task: str
    ran: list[str] = field(default_factory=list)

    @property
    def states(self) -> dict[str, str]:
        """The states of the steps, with the letter of a step that the task went on without."""
        rows = self.orchestra.lab.steps(self.task)
        return {name: row.state + (f":{row.settled}" if row.settled else "") for name, row in rows.items()}

    @property
    def end(self) -> tuple[str, str | None]:
        row = self.orchestra.lab.task(self.task)
        return row.state, row.outcome

    @property
    def dead_letters(self) -> int:
        query = "select count(*) from tasker.tasks_dlq where task_uuid = %s"
        return int(self.orchestra.lab.observer.value(query, self.task))

    async def report(self, claim: Item, failing: Collection[str] = (), results: Mapping[str, Any] | None = None) -> Any:
        self.ran.append(claim["name"])
        failure = BROKEN if claim["name"] in failing else None
        result = (results or {}).get(claim["name"])
        return await self.orchestra.process(result_of(self.plan, claim, result, failure=failure))

    async def run(self, failing: Collection[str] = (), results: Mapping[str, Any] | None = None) -> Story:
        """Run what is ready until nothing is, in the order of the names."""
        lab = self.orchestra.lab
        while claims := sorted(lab.one.take(), key=lambda claim: claim["name"]):
            for claim in claims:
                await self.report(claim, failing, results)
            lab.check()
        return self


Begin = Callable[..., Story]


@pytest.fixture
def begin(orchestra: Orchestra) -> Begin:
    """Submits a task of these steps."""

    def submit(steps: str, top: str = "", **entry: Any) -> Story:
        plan = template(orchestra.lab, steps, top)
        return Story(orchestra, plan, orchestra.lab.submit_one(plan, **entry))

    return submit


Run = Callable[..., Awaitable[Story]]


@pytest.fixture
def run(begin: Begin) -> Run:
    """Submits a task of these steps and runs it to its end."""

    async def to_the_end(steps: str, *failing: str, top: str = "", results: Mapping[str, Any] | None = None) -> Story:
        return await begin(steps, top).run(failing, results)

    return to_the_end
