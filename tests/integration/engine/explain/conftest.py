"""A lab in which it is noon, and what is said about a task of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tasker.views.explanation import Explained, Explanation, explanation
from tests.support.engine_fixture import Lab, Session

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RESULTS_QUEUE = "orchestration_step_results"


class Told:
    """What is said about the tasks of a lab; its clock stands still."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.at(0)

    def at(self, seconds: float) -> None:
        """So many seconds after noon, for everybody."""
        for session in (self.lab.one, self.lab.two, self.lab.observer):
            moment = (NOON + timedelta(seconds=seconds)).isoformat()
            session.execute("select set_config('tasker.now', %s, false)", moment)

    def task(self, task: str, step: str | None = None, **limits: int) -> Explanation:
        args = {"task": task, "step": step, "results_queue": RESULTS_QUEUE, **limits}
        return explanation(self.lab.observer.core("explain", args))

    def one(self, task: str, step: str) -> Explained:
        """The first reason of a step."""
        return self.task(task, step).reasons[0]

    def sentence(self, task: str, step: str) -> str:
        return self.one(task, step).sentence(UTC)

    def sentences(self, task: str) -> dict[str, str]:
        """The sentences about a task, by the steps."""
        return {", ".join(each.steps): each.sentence(UTC) for each in self.task(task).reasons}


def at_work(session: Session, name: str, kind: str = "worker", **more: object) -> Session:
    """The session is a worker that is called so, for thirty seconds, with ten slots."""
    entry = {"action": "start", "kind": kind, "worker": session.worker, "name": name, "lease_ms": 30_000}
    place = {"host": "here", "pid": 1, "namespaces": [session.lab.namespace], "concurrency": 10}
    session.core("worker", {**entry, **place, **more})
    return session


@pytest.fixture
def told(lab: Lab) -> Told:
    return Told(lab)
