"""The engine under test without a worker's runtime: a `Lab` submits tasks, its `Session`s claim and advance by SQL.

A session is one connection with the identity of a worker, so two of them are two processes. Nothing here sleeps: a call
that is expected to wait runs on a thread, and the server says whether it does.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from psycopg.rows import namedtuple_row

from tasker.clock import new_task_uuid
from tasker.db.connection import Statements
from tasker.db.session import Rows
from tasker.engine.exchange import CLAIM_BYTES
from tasker.engine.fleet_rules import DEFAULT_RULES, shared_arguments
from tasker.engine.states.step import STEP, StepState
from tasker.engine.states.task import TASK, TaskState
from tasker.template.plan import Plan
from tests.support.laboratory import NAMESPACE, Sessions
from tests.support.random_plans import Spec, build_plan

Answer = dict[str, Any]
Item = dict[str, Any]
T = TypeVar("T")

SHARED = shared_arguments(DEFAULT_RULES)
SWEEP = {"limit": 500, "steps": 2000, "hint_grace_ms": 5000, "park_grace_ms": 5000, "idle_grace_ms": 1000}
ALONE = ("record_repairs", "graph")
"""Functions whose arguments are what they store, or their data."""
COMPLETE: dict[str, dict[str, Any]] = {
    "stale": {"limit": 100},
    "replay": {"steps": 1000},
    "backlog": {"limit": 500},
    "due": {"limit": 100},
    "inputs": {"max_bytes": CLAIM_BYTES},
    "parked": {"max_bytes": CLAIM_BYTES},
    "events": {"max_bytes": CLAIM_BYTES},
    "marks": {"slice": 2000},
    "pause": {"slice": 2000},
    "resume": {"slice": 2000},
    "failure_bursts": {"slice": 2000},
    "repair": {"every_ms": 60_000, "slice": 1000},
    "paused": {"limit": 20},
    "depth": {"limit": 100_000},
    "explain": {"names": 5, "groups": 200},
    "sweep": SWEEP,
    "find_waiting": SWEEP,
    "performance": {"hours": 1, "tasks": 20_000},
    "step_pace": {"tasks": 200},
    "overview": {"window_seconds": 3600, "tasks": 2000},
    "scaling": {"window_seconds": 300},
    "versions": {"tasks": 1000},
    "activity": {"seconds": 3600, "slices": 30, "tasks": 20_000, "steps": 1000},
    "bottlenecks": {"hours": 24, "tasks": 20_000, "min_executions": 1, "limit": 10},
}
"""What the functions need beside that of which a test speaks."""

FAILURE = {"message": "it broke", "error_type": "TestError", "retryable": True}
_numbers = itertools.count(1)


class Session:
    """One connection, in autocommit mode, that calls the engine as worker `worker`."""

    def __init__(self, lab: Lab, connection: psycopg.Connection[Any]) -> None:
        self.lab, self.connection = lab, connection
        self.worker = str(uuid4())

    @property
    def pid(self) -> int:
        return self.connection.info.backend_pid

    def rows(self, query: str, *params: Any) -> list[Any]:
        return self.connection.execute(query.encode(), params).fetchall()

    def value(self, query: str, *params: Any) -> Any:
        return self.rows(query, *params)[0][0]

    def execute(self, statement: str, *params: Any) -> None:
        self.connection.execute(statement.encode(), params)

    def core(self, function: str, args: Mapping[str, Any]) -> Answer:
        """Call `tasker.FUNCTION_v1`; nothing is sent."""
        if function in ("begin", "checkpoint"):
            args = {"worker": self.worker, **args}
        args = complete(function, args)
        return _signed(self.value(f"select tasker.{function}_v1(%s::jsonb)", json.dumps(args)) or {}, args)

    def call(self, function: str, args: Mapping[str, Any]) -> Answer:
        """Call it and send the hints that it answers, in one transaction."""
        args = complete(function, args)
        answer = self.value("select tasker_pgmq.call_v1(%s, %s::jsonb)", f"{function}_v1", json.dumps(args))
        return _signed(answer, args)

    def args(self, **more: Any) -> dict[str, Any]:
        """The caller's part of the arguments: serves the lab's namespace, has no free slot."""
        return {
            **SHARED,
            "worker": self.worker,
            "slots": 0,
            "namespace_ids": [self.lab.namespace_id],
            "unserved": [],
            "window": self.lab.window,
            "namespaces": [self.lab.namespace],
            **more,
        }

    def submit(self, plan: Plan, *entries: Mapping[str, Any], force: bool = False, **caller: Any) -> Answer:
        """Submit one task for each entry (`id`, `identity`, `priority`, `context` ... may be left out).

        With the fields of a caller its worker may claim the first steps.
        """
        template = self.core(
            "register_template", {"hash": plan.hash, "plan": json.loads(plan.to_json()), "force": force}
        )
        tasks = [{"id": new_task_uuid(), "identity": str(uuid4()), **entry} for entry in entries]
        args = {"window": self.lab.window, **caller, "template": template["template"], "tasks": tasks}
        return self.call("submit", args)

    def claim(self, slots: int = 100, **more: Any) -> list[Item]:
        return list(self.claim_answer(slots, **more).get("claims") or ())

    def take(self, slots: int = 100, **more: Any) -> list[Item]:
        """Claim as a worker does: from the queue, and from the backlog where the answer says so."""
        answer = self.claim_answer(slots, **more)
        claims = list(answer.get("claims") or ())
        if answer.get("release"):
            claims += self.call("backlog", self.args(slots=slots - len(claims), **more)).get("claims") or ()
        return claims

    def claim_answer(self, slots: int = 100, **more: Any) -> Answer:
        """Take hints from the queue and claim their steps."""
        args = complete("claim", self.args(slots=slots, **more))
        return _signed(self.value("select tasker_pgmq.claim_v1(%s::jsonb)", json.dumps(args)), args)

    def advance(self, *items: Item, **more: Any) -> Answer:
        return self.call("advance", self.args(items=list(items), **more))

    def finish(self, *claims: Item, **more: Any) -> Answer:
        """Results for these claims."""
        return self.advance(*(ok(claim) for claim in claims), **more)

    def run_all(self, limit: int = 1000) -> int:
        """Claim and complete until the queue is empty; how many steps."""
        done = 0
        while (claims := self.claim()) and done < limit:
            self.finish(*claims)
            done += len(claims)
        return done

    def start_worker(self, lease_ms: int = 30_000) -> None:
        self.core(
            "worker",
            {
                "action": "start",
                "worker": self.worker,
                "lease_ms": lease_ms,
                "host": "here",
                "pid": 1,
                "namespaces": [self.lab.namespace],
                "concurrency": 10,
            },
        )

    def set_time(self, seconds: float, after: datetime | None = None) -> None:
        """From now on this session lives `seconds` after the present, or after another time."""
        self.execute(
            "select set_config('tasker.now', (coalesce(%s, now()) + make_interval(secs => %s))::text, false)",
            after,
            seconds,
        )


class Direct(Statements):
    """A session, for whoever awaits."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def execute(self, statement: str, params: Any = None) -> Rows:
        return self.session.connection.execute(statement.encode(), params).fetchall()

    async def close(self) -> None:
        """It stays open."""


class Lab:
    """A namespace of its own on a migrated database, and sessions on it. `window` is the enqueue window.

    With `kept` it works in their namespace and over their sessions, and gives them back at the end.
    """

    def __init__(self, url: str, window: int = 2000, kept: Sessions | None = None) -> None:
        self.url, self.window, self._kept = url, window, kept
        self.namespace = NAMESPACE if kept else f"lab{next(_numbers)}"
        self._sessions: list[Session] = []
        self._pool = ThreadPoolExecutor(8)
        self.observer = self._connect()
        self.namespace_id = int(self.observer.value("select tasker.namespace_id(%s)", self.namespace))
        self.one = self.session()

    @cached_property
    def two(self) -> Session:
        """A second session, for those who want one."""
        return self.session()

    def session(self, **options: Any) -> Session:
        session = self._connect(**options)
        self._sessions.append(session)
        return session

    def _connect(self, **options: Any) -> Session:
        if self._kept and not options:
            return Session(self, self._kept.take())
        connection = psycopg.connect(self.url, autocommit=True, row_factory=namedtuple_row, **options)
        return Session(self, connection)

    def plan(self, *specs: Spec, name: str = "flow") -> Plan:
        return build_plan(*specs, namespace=self.namespace, name=name)

    def chain(self, length: int = 2, name: str = "chain") -> Plan:
        """s0 -> s1 -> ..."""
        return self.plan(*(Spec(f"s{i}", depends_on=(f"s{i - 1}",) if i else ()) for i in range(length)), name=name)

    def submit(self, plan: Plan, *entries: Mapping[str, Any]) -> list[str]:
        """The identifiers of the created tasks; one without further wishes when no entry is given."""
        return [str(task) for task in self.one.submit(plan, *(entries or ({},)))["created"]]

    def submit_one(self, plan: Plan, **entry: Any) -> str:
        return self.submit(plan, entry)[0]

    def running(self, plan: Plan, **entry: Any) -> tuple[str, dict[str, Item]]:
        """A new task with all its ready steps claimed by the first session: the task, and the claims by name."""
        task = self.submit_one(plan, **entry)
        claims = self.one.take()
        assert {claim["task"] for claim in claims} <= {task}, "the queue held other tasks' steps"
        return task, {claim["name"]: claim for claim in claims}

    def running_claims(self, task: str) -> dict[str, Item]:
        """Every step of the task that runs, claimed now or before, as claims by name."""
        self.one.take()
        return {
            name: {
                "step": str(row.workflow_step_uuid),
                "task": task,
                "name": name,
                "token": row.claim_token,
                "worker": str(row.worker_uuid),
            }
            for name, row in self.steps(task).items()
            if row.state == "in_progress"
        }

    def task(self, task: str) -> Any:
        return self.observer.rows("select * from tasker.tasks where task_uuid = %s", task)[0]

    def steps(self, task: str) -> dict[str, Any]:
        """The task's step rows by name."""
        rows = self.observer.rows("select * from tasker.workflow_steps where task_uuid = %s order by name", task)
        return {row.name: row for row in rows}

    def states(self, task: str) -> dict[str, str]:
        return {name: row.state for name, row in self.steps(task).items()}

    def task_paths(self, task: str) -> list[str]:
        query = "select path from tasker.task_transition_log where task_uuid = %s order by sort_key"
        return [row.path for row in self.observer.rows(query, task)]

    def step_paths(self, task: str, name: str) -> list[str]:
        query = """select l.path from tasker.step_transition_log l
          join tasker.workflow_steps s using (workflow_step_uuid)
          where l.task_uuid = %s and s.name = %s order by l.sort_key"""
        return [row.path for row in self.observer.rows(query, task, name)]

    def refused(self, task: str) -> list[Any]:
        return self.observer.rows("select * from tasker.refused_results where task_uuid = %s order by id", task)

    def queue_depth(self) -> int:
        queue = f"q_worker_{self.namespace}_queue"
        if self.observer.value("select to_regclass(%s) is null", f"pgmq.{queue}"):
            return 0
        return int(self.observer.value(f"select count(*) from pgmq.{queue}"))

    def lose_hints(self) -> None:
        """All messages of the queue are lost."""
        self.observer.execute(f"truncate pgmq.q_worker_{self.namespace}_queue")

    @contextmanager
    def transaction(self, session: Session) -> Iterator[None]:
        """What the session does within it is visible and unlocked only afterwards."""
        with session.connection.transaction():
            yield

    def later(self, call: Callable[..., T], *args: Any, **more: Any) -> Future[T]:
        """Call it on a thread."""
        return self._pool.submit(call, *args, **more)

    def waits(self, future: Future[Any], session: Session, on: Session) -> None:
        """Return once the session's call waits for a lock of the other; the server tells, no clock is involved."""
        while on.pid not in self.observer.value("select pg_blocking_pids(%s)", session.pid):
            assert not future.done(), f"it did not wait: {future.result()}"

    def close(self) -> None:
        self._pool.shutdown()
        for session in (*reversed(self._sessions), self.observer):  # the next lab's observer gets that of this one
            self._let_go(session.connection)

    def _let_go(self, connection: psycopg.Connection[Any]) -> None:
        if self._kept:
            self._kept.take_back(connection)
        else:
            connection.close()

    def check(self, most: int = 200) -> None:
        """No invariant is broken (in up to `most` tasks), and every path in the history is legal by the tables."""
        tasks = [str(row.task_uuid) for row in self._of_namespace("task_uuid from tasker.tasks x")][-most:]
        broken = self.observer.rows("select * from tasker.violations_v1(%s::jsonb)", json.dumps({"tasks": tasks}))
        assert not broken, broken
        for row in self._of_namespace(
            "distinct path from tasker.task_transition_log l join tasker.tasks x using (task_uuid)"
        ):
            assert TASK.allows(TaskState(state) for state in row.path.split(">")), row.path
        for row in self._of_namespace(
            "distinct path from tasker.step_transition_log l join tasker.workflow_steps x using (workflow_step_uuid)"
        ):
            assert STEP.allows(StepState(state) for state in row.path.split(">")), row.path

    def _of_namespace(self, what: str) -> list[Any]:
        return self.observer.rows(f"select {what} where x.namespace_id = %s", self.namespace_id)


def ok(claim: Item, result: Any = None, **more: Any) -> Item:
    """The item for a result."""
    return {**_of(claim), "kind": "ok", "ms": 5, "r": {"by": claim["name"]} if result is None else result, **more}


def retry(claim: Item, delay_ms: int = 1000, **more: Any) -> Item:
    """The item for a failure that will be tried again."""
    return {**_of(claim), "kind": "retry", "d": delay_ms, "ms": 5, "e": FAILURE, **more}


def fail(claim: Item, **more: Any) -> Item:
    """The item for a permanent failure."""
    return {**_of(claim), "kind": "fail", "ms": 5, "e": FAILURE, **more}


def change(kind: str, claim: Item, **more: Any) -> Item:
    """Any other kind of item under the claim's token."""
    return {**_of(claim), "kind": kind, **more}


def operator(kind: str, row: Any, **more: Any) -> Item:
    """An item without a token, from a step's row."""
    return {"s": str(row.workflow_step_uuid), "t": str(row.task_uuid), "kind": kind, **more}


def new_step(plan: Plan, name: str, *parents: str) -> Item:
    """A step that an expansion creates."""
    return {"name": name, "ordinal": plan.by_name[name].ordinal, "parents": list(parents)}


def _of(claim: Item) -> Item:
    signed = {"w": claim["worker"]} if claim.get("worker") else {}
    return {"s": claim["step"], "t": claim["task"], "k": claim["token"], **signed}


def complete(function: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with those that callers of the engine always give."""
    return dict(args) if function in ALONE else {**SHARED, **COMPLETE.get(function, {}), **args}


def _signed(answer: Mapping[str, Any], args: Mapping[str, Any]) -> Answer:
    """The answer, its claims with the worker that got them: whichever session brings what they came to."""
    for claim in answer.get("claims") or ():
        claim.setdefault("worker", args["worker"])
    return dict(answer)


def verdict(answer: Answer, claim: Item) -> str:
    """What the engine said about this claim's result."""
    return str((answer.get("verdicts") or {}).get(claim["step"], "accepted"))
