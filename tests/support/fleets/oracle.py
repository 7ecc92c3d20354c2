"""What must be true after any run with faults, read from the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from tests.support.fleets.judging import Found, complaints
from tests.support.fleets.mixture import Mixed
from tests.support.waiting import until

PROMISES = (
    "select * from tasker.violations_v1('{}')",
    # no step has two accepted results
    """select workflow_step_uuid, count(*) from tasker.step_transition_log
    where path like '%>complete' group by 1 having count(*) > 1""",
    # the history has every transition once, and one of them is the last
    """select workflow_step_uuid from tasker.workflow_step_transitions group by 1 having count(*) <> max(sort_key)
    or count(distinct sort_key) <> count(*) or count(*) filter (where most_recent) <> 1""",
    """select task_uuid from tasker.task_transitions group by 1 having count(*) <> max(sort_key)
    or count(distinct sort_key) <> count(*) or count(*) filter (where most_recent) <> 1""",
    # every row has a history
    """select workflow_step_uuid from tasker.workflow_steps s where not exists (
    select from tasker.workflow_step_transitions t where t.workflow_step_uuid = s.workflow_step_uuid)""",
    # every result or failure that a worker brought is audited
    """select workflow_step_uuid from tasker.workflow_step_transitions t left join tasker.workflow_step_result_audit a
      using (workflow_step_uuid, workflow_step_transition_uuid) where t.from_state = 'in_progress'
      and t.to_state like 'enqueued%for_orchestration' and a.workflow_step_uuid is null""",
)


class Oracle:
    """Judges the tasks of a run."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._connection = psycopg.connect(database_url, autocommit=True)

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def reconnect(self) -> None:
        """Connect anew, after the server was away."""
        self.close()
        self._connection = psycopg.connect(self._url, autocommit=True)

    def wait_for_the_end(self, tasks: Sequence[str], *, limit: float = 240.0) -> None:
        """Return when every task is final."""

        def done() -> bool:
            query = "select count(*) from tasker.tasks where task_uuid = any (%s::uuid[]) and complete"
            return bool(self.value(query, list(tasks)) == len(tasks))

        until(done, f"{len(tasks)} tasks are final", limit=limit, show=self.open_steps)

    def check(self, expected: Mapping[str, str]) -> None:
        """Each task ended as expected, and no promise is broken."""
        rows = self.rows(
            "select task_uuid::text, state from tasker.tasks where task_uuid = any (%s::uuid[])", [*expected]
        )
        wrong = {task: state for task, state in rows if state != expected[task]}
        assert not wrong, wrong
        self.check_promises()

    def check_mixture(self, mixed: Sequence[Mixed]) -> None:
        """Each is one task and came to what its case says, or a lost worker explains why not; no promise is broken."""
        tasks = self.rows(
            """select d.reason, d.task_uuid::text from tasker.task_details d
               where not exists (select from tasker.task_links l where l.child_uuid = d.task_uuid)"""
        )
        assert sorted(key for key, _ in tasks) == sorted(each.key for each in mixed)
        by_key, found = {each.key: each for each in mixed}, self.found([task for _, task in tasks])
        wrong = [line for key, task in tasks for line in complaints(by_key[key].case, by_key[key].plan, found[task])]
        assert not wrong, wrong[:10]
        values = [result["value"] for each in found.values() for result in each.telling.values()]
        assert len(set(values)) == len(values), "two steps have the result of one run"
        self.check_promises()

    def check_promises(self) -> None:
        """Invariants, one accepted result per step, the history."""
        for promise in PROMISES:
            broken = self.rows(promise)
            assert not broken, (promise, broken[:10])

    def check_repairs(self, **most: int) -> None:
        """Every lost attempt was repaired once; of other kinds there are at most so many repairs, else none."""
        repairs, lost = +self.repairs(), self.failures("worker_lost")
        assert repairs.pop("lost_worker", 0) == lost, (self.repairs(), lost)
        assert not repairs - Counter(most), (repairs, most)

    def repairs(self) -> Counter[str]:
        """What sweeps have repaired, by kind."""
        return Counter(dict(self.rows("select kind, repaired from tasker.repairs")))

    def parked(self) -> int:
        """How many parked results were ended: of an attempt that is to be tried again, too."""
        query = "select count(*) from tasker.step_transition_log where path like 'enqueued%for_orchestration>%'"
        return int(self.value(query))

    def ended_from_the_queue(self) -> int:
        """Parked results that an orchestrator ended, because their message came, and no sweep."""
        return self.parked() - self.repairs()["result_message_lost"]

    def failures(self, error_type: str) -> int:
        """How many attempts failed with that type."""
        return int(self.value("select count(*) from tasker.step_failures where error->>'error_type' = %s", error_type))

    def busy_pids(self) -> list[int]:
        """The processes whose workers run steps now, the busiest one first."""
        rows = self.rows(
            """select w.pid from tasker.workflow_steps s join tasker.workers w using (worker_uuid)
               where s.state = 'in_progress' group by w.pid order by count(*) desc"""
        )
        return [pid for (pid,) in rows]

    def is_given_up(self, pid: int) -> bool:
        """True when no worker of that process is trusted any more."""
        query = "select count(*) = 0 from tasker.workers where pid = %s and lease_until >= clock_timestamp()"
        return bool(self.value(query, pid))

    def refused(self) -> int:
        """How many results were refused."""
        return int(self.value("select count(*) from tasker.refused_results"))

    def pids(self) -> list[int]:
        """The processes of the workers that are trusted."""
        query = "select pid from tasker.workers where kind = 'worker' and lease_until >= clock_timestamp() order by pid"
        return [pid for (pid,) in self.rows(query)]

    def created(self) -> int:
        """How many tasks there are."""
        return int(self.value("select count(*) from tasker.tasks"))

    def finished(self) -> int:
        """How many tasks are final."""
        return int(self.value("select count(*) from tasker.tasks where complete"))

    def value(self, query: str, *params: Any) -> Any:
        """The first column of the first row."""
        return self.rows(query, *params)[0][0]

    def rows(self, query: str, *params: Any) -> list[Any]:
        """The rows of a query."""
        return self._connection.execute(query, params or None).fetchall()

    def found(self, tasks: list[str]) -> dict[str, Found]:
        """The tasks with their steps, as the database has them."""
        found = {
            task: Found(state)
            for task, state in self.rows(
                "select task_uuid::text, state from tasker.tasks where task_uuid = any (%s::uuid[])", tasks
            )
        }
        for task, name, step, state, attempts, result, failures in self.rows(
            """select s.task_uuid::text, s.name, s.workflow_step_uuid::text, s.state, s.attempts, r.result, (
                 select coalesce(jsonb_agg(f.error order by f.failure_id), '[]') from tasker.step_failures f
                 where f.task_uuid = s.task_uuid and f.workflow_step_uuid = s.workflow_step_uuid)
               from tasker.workflow_steps s left join tasker.step_results r
                 on r.task_uuid = s.task_uuid and r.workflow_step_uuid = s.workflow_step_uuid
               where s.task_uuid = any (%s::uuid[])""",
            tasks,
        ):
            found[task].ids[name] = step
            found[task].states[name] = state
            found[task].attempts[name] = attempts
            found[task].failures[name] = failures
            if result is not None:
                found[task].results[name] = result
        return found

    def open_steps(self) -> str:
        """Steps that keep tasks from ending."""
        return "\n".join(
            map(
                str,
                self.rows(
                    """select t.state, s.name, s.state, s.attempts, s.worker_uuid, s.updated_at from tasker.tasks t
                       join tasker.workflow_steps s using (task_uuid)
                       where not t.complete and s.state not in ('complete', 'pending') limit 20"""
                ),
            )
        )
