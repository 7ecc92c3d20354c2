"""Limits under whatever happens in whatever order: users, workers, operators, deaths, transactions that stay open.

The machine does not predict who runs. It counts what runs under each key from the steps and the inputs of their tasks,
asks for violated invariants, and in the end lets everything run to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tasker.template.plan import Plan, StepLimit
from tests.integration.engine.machine.test_machine import EXAMPLES, PROFILE
from tests.support.engine_fixture import Item, Lab, Session, fail, ok, operator, retry
from tests.support.random_plans import Spec

KEYS = ("a", "b")
KEY = {"input": ["customer"]}
WHY = {"actor": "ops", "reason": "why not"}
LONGEST_WAIT = "30ms"
LIMITED = settings(PROFILE, max_examples=max(8, EXAMPLES // 3))
RUNNING = """select coalesce(d.context->>'customer', ''), count(*) from tasker.workflow_steps s
  join tasker.task_details d using (task_uuid) join tasker.template_limits l using (template_id, ordinal)
  join tasker.limit_rules r using (rule_id)
  where tasker.step_is_active(s.state) and s.namespace_id = %s and r.name like %s group by 1"""


class Limited(RuleBasedStateMachine):
    """Rules: three workers, of which the last may keep a transaction open meanwhile."""

    url: str

    @initialize(
        limit=st.integers(1, 3),
        window=st.sampled_from([1, 2, 2000]),
        on_limit=st.sampled_from([None, None, "wait", "cancel_new", "cancel_running"]),
        named=st.booleans(),
    )
    def begin(self, limit: int, window: int, on_limit: str | None, named: bool) -> None:
        self.stack = ExitStack()
        self.lab = Lab(self.url, window)
        self.stack.callback(self.lab.close)
        self.workers = [self.lab.one, self.lab.two, self.lab.session()]
        for worker in self.workers:
            worker.execute(f"set lock_timeout = '{LONGEST_WAIT}'")
        self.limit, self.named, self.shared = limit, named, f"{self.lab.namespace} shared"
        if named:
            self._declare(limit, rate=True)
        self.plan = self._plan(limit)
        if on_limit is not None:  # at most two tasks of a customer
            rule = StepLimit(f"task {self.lab.namespace}", KEY, 2, on_limit=on_limit)
            self.plan = replace(self.plan, concurrency=rule)
        self.tasks: list[str] = []
        self.claims: list[tuple[Session, Item]] = []
        self.open: ExitStack | None = None

    def _plan(self, limit: int) -> Plan:
        rule = {"name": self.shared, "key": KEY} | ({} if self.named else {"max_running": limit})
        return self.lab.plan(
            Spec("first", limits=(rule,)),
            Spec("plain", depends_on=("first",)),
            Spec("last", depends_on=("first",), limits=(rule,)),
            name="machine",
        )

    def _declare(self, limit: int, rate: bool) -> None:
        """Numbers of a configuration; with a rate the permits are marked by claims, and there are always tokens."""
        numbers = {"rate": 1e6, "burst": 1e6} if rate else {"rate": None, "burst": None}
        self.lab.one.core(
            "declare_limits", {"changed_at": None, "limits": [{"name": self.shared, "concurrency": limit, **numbers}]}
        )

    def _try(self, call: Callable[[], Any], session: Session | None = None) -> Any:
        """A write that waits too long fails; nothing of it stays."""
        try:
            return call()
        except psycopg.errors.LockNotAvailable:
            if self.open is not None and session is self.workers[2]:
                self._end(commit=False)
            return {}

    @contextmanager
    def _checked(self) -> Iterator[None]:
        yield
        self.check()

    def _add(self, session: Session, answer: Any) -> None:
        if session is self.workers[2] and self.open is not None:
            return  # it may be rolled back: lost claims, which a sweep would take
        self.claims += [(session, claim) for claim in (answer or {}).get("claims") or ()]

    # --- users and workers -------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.tasks) < 12)
    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4), priority=st.sampled_from([0, 0, 5]))
    def submit(self, keys: list[str], priority: int) -> None:
        with self._checked():
            entries = [{"context": {"customer": key}, "priority": priority} for key in keys]
            self.tasks += self.lab.submit(self.plan, *entries)

    @rule(worker=st.integers(0, 2), slots=st.integers(0, 3))
    def keep_time(self, worker: int, slots: int) -> None:
        session = self.workers[worker]
        with self._checked():
            self._add(session, self._try(lambda: session.call("due", session.args(slots=slots)), session))

    @rule(worker=st.integers(0, 1), slots=st.integers(1, 4))
    def claim(self, worker: int, slots: int) -> None:
        session = self.workers[worker]
        with self._checked():
            self.claims += [(session, claim) for claim in self._try(lambda: session.claim(slots), session) or ()]

    @rule(worker=st.integers(0, 1), slots=st.integers(0, 4))
    def release_backlog(self, worker: int, slots: int) -> None:
        session = self.workers[worker]
        with self._checked():
            self._add(session, self._try(lambda: session.call("backlog", session.args(slots=slots)), session))

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), how=st.sampled_from([ok, ok, ok, retry, fail]), slots=st.integers(0, 3), by=st.integers(0, 2))
    def end(self, data: st.DataObject, how: Any, slots: int, by: int) -> None:
        count = data.draw(st.integers(1, min(3, len(self.claims))))
        items = [how(claim) for _, claim in self.claims[:count]]
        session = self.workers[by]
        with self._checked():
            answer = self._try(
                lambda: session.advance(*items, slots=slots, namespace_ids=[self.lab.namespace_id]), session
            )
            if answer and not (by == 2 and self.open is not None):
                del self.claims[:count]
            self._add(session, answer)

    @precondition(lambda self: self.claims)
    @rule()
    def release(self) -> None:
        _, claim = self.claims.pop()
        item = {"s": claim["step"], "t": claim["task"], "k": claim["token"], "w": claim["worker"], "kind": "release"}
        with self._checked():
            self._try(lambda: self.lab.one.advance(item))

    # --- operators ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), by=st.sampled_from([0, 0, 2]))
    def cancel(self, data: st.DataObject, by: int) -> None:
        task, session = data.draw(st.sampled_from(self.tasks)), self.workers[by]
        with self._checked():
            self._try(lambda: session.core("cancel", {"task": task}), session)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), kind=st.sampled_from(["resolve", "complete", "reset", "cancel"]))
    def operate(self, data: st.DataObject, kind: str) -> None:
        steps = self.lab.steps(data.draw(st.sampled_from(self.tasks)))
        with self._checked():
            self._try(lambda: self.lab.one.advance(operator(kind, steps[data.draw(st.sampled_from(sorted(steps)))])))

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), whole=st.booleans(), begins=st.booleans())
    def pause(self, data: st.DataObject, whole: bool, begins: bool) -> None:
        target = {"namespace": self.lab.namespace} if whole else {"task": data.draw(st.sampled_from(self.tasks))}
        with self._checked():
            self._try(lambda: self.lab.one.core("pause" if begins else "resume", {**target, **WHY}))

    @rule(limit=st.integers(1, 3), rate=st.booleans())
    def change(self, limit: int, rate: bool) -> None:
        with self._checked():
            if self.named:
                self._try(lambda: self._declare(limit, rate))
            else:
                self._try(lambda: self.lab.one.execute("select tasker.set_limit(%s, %s)", self.shared, limit))
            self.limit = max(self.limit, limit)

    @rule()
    def repair(self) -> None:
        with self._checked():
            repaired = (self._try(lambda: self.lab.one.core("repair", {"begin": True})) or {}).get("repaired") or {}
            assert not repaired.get("permit_of_an_ended_step")

    # --- transactions that stay open ---------------------------------------------------------------------------------

    @precondition(lambda self: self.open is None)
    @rule()
    def open_transaction(self) -> None:
        self.open = ExitStack()
        self.open.enter_context(self.workers[2].connection.transaction())

    @precondition(lambda self: self.open is not None)
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        with self._checked():
            self._end(commit)

    def _end(self, commit: bool) -> None:
        transaction, self.open = self.open, None
        assert transaction is not None
        if commit:
            transaction.close()
        else:
            with suppress(psycopg.Error), transaction:
                raise psycopg.Rollback

    # --- what holds --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        running = self.lab.observer.rows(RUNNING, self.lab.namespace_id, f"{self.lab.namespace} %")
        assert all(count <= self.limit for _, count in running), (running, self.limit)
        broken = self.lab.observer.rows("select * from tasker.violations_v1('{}')")
        assert broken == [], broken

    def teardown(self) -> None:
        if not hasattr(self, "lab"):
            return
        try:
            if self.open is not None:
                self._end(commit=False)
            self._drain()
        finally:
            self.stack.close()

    def _drain(self) -> None:
        """Everything runs to its end, without a sweep, and no permit is left."""
        one, observer = self.lab.one, self.lab.observer
        one.execute("reset lock_timeout")
        for target in [{"namespace": self.lab.namespace}, *({"task": task} for task in self.tasks)]:
            one.core("resume", {**target, **WHY})
        open_tasks = "select task_uuid from tasker.tasks where not complete and namespace_id = %s"
        for _ in range(200):
            one.set_time(3600)
            one.call("due", one.args())
            one.take(50)
            for (task,) in observer.rows(open_tasks, self.lab.namespace_id):
                for row in self.lab.steps(str(task)).values():
                    if row.state == "in_progress":
                        claim = {"step": str(row.workflow_step_uuid), "task": str(task), "token": row.claim_token,
                                 "worker": str(row.worker_uuid), "name": row.name}  # fmt: skip
                        one.advance(ok(claim))
                    elif row.state == "error":
                        one.advance(operator("resolve", row))
            if not observer.rows(open_tasks, self.lab.namespace_id):
                break
        else:
            raise AssertionError(observer.rows("select * from tasker.limit_waiters"))
        one.set_time(0)
        assert observer.rows("select * from tasker.limit_permits") == []
        assert observer.rows("select * from tasker.limit_waiters") == []
        self.check()


@pytest.mark.usefixtures("module_database_url")
def test_no_order_of_events_breaks_a_limit(module_database_url: str) -> None:
    class OnThisDatabase(Limited):
        url = module_database_url

    run_state_machine_as_test(OnThisDatabase, settings=LIMITED)
