"""What must be true after any run with faults, read from the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from tests.support.waiting import until


class Oracle:
    """Judges the tasks of a run."""

    def __init__(self, database_url: str) -> None:
        self._connection = psycopg.connect(database_url, autocommit=True)

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def wait_for_the_end(self, tasks: Sequence[str], *, limit: float = 240.0) -> None:
        """Return when every task is final."""

        def done() -> bool:
            query = "select count(*) from tasker.tasks where task_uuid = any (%s::uuid[]) and complete"
            return self._value(query, list(tasks)) == len(tasks)

        until(done, f"{len(tasks)} tasks are final", limit=limit, show=self._open)

    def check(self, expected: Mapping[str, str]) -> None:
        """Each task ended as expected, no invariant is broken, every step has one accepted result."""
        rows = self._connection.execute(
            "select task_uuid::text, state from tasker.tasks where task_uuid = any (%s::uuid[])", (list(expected),)
        ).fetchall()
        wrong = {task: state for task, state in rows if state != expected[task]}
        assert not wrong, wrong
        broken = self._connection.execute("select * from tasker.violations_v1('{}')").fetchall()
        assert not broken, broken[:10]
        doubled = self._connection.execute(
            """select workflow_step_uuid, count(*) from tasker.step_transition_log
               where path like '%%>complete' group by 1 having count(*) > 1"""
        ).fetchall()
        assert not doubled, doubled[:10]

    def repairs(self) -> Counter[str]:
        """What sweeps have repaired, by kind."""
        return Counter(dict(self._connection.execute("select kind, repaired from tasker.repairs").fetchall()))

    def failures(self, error_type: str) -> int:
        """How many attempts failed with that type."""
        return int(self._value("select count(*) from tasker.step_failures where error->>'error_type' = %s", error_type))

    def busiest_pid(self) -> int | None:
        """The process whose worker runs the most steps now; None while nobody runs any."""
        row = self._connection.execute(
            """select w.pid from tasker.workflow_steps s join tasker.workers w using (worker_uuid)
               where s.state = 'in_progress' group by w.pid order by count(*) desc limit 1"""
        ).fetchone()
        return row[0] if row else None

    def refused(self) -> int:
        """How many results were refused."""
        return int(self._value("select count(*) from tasker.refused_results"))

    def finished(self) -> int:
        """How many tasks are final."""
        return int(self._value("select count(*) from tasker.tasks where complete"))

    def _value(self, query: str, *params: Any) -> Any:
        row = self._connection.execute(query, params or None).fetchone()  # type: ignore[call-overload]
        assert row is not None
        return row[0]

    def _open(self) -> str:
        rows = self._connection.execute(
            """select t.state, s.name, s.state, s.attempts, s.worker_uuid, s.updated_at from tasker.tasks t
               join tasker.workflow_steps s using (task_uuid)
               where not t.complete and s.state not in ('complete', 'pending') limit 20"""
        ).fetchall()
        return "\n".join(map(str, rows))
