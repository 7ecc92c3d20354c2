"""The real engine in one thread: several logical workers, a mailbox that a test can rob, a clock that it moves.

Every call of the engine is recorded and shown to the model; after each action the rows are compared with the model and
`violations_v1` must be empty.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tasker.db.connection import Connection
from tasker.engine.calls import Answer
from tasker.engine.exchange import ClaimRow, CompletingWorker, Result, inputs_of
from tasker.engine.expansion.outcomes import OutcomeError
from tasker.engine.plans import PlanStore
from tasker.errors import StateMachineError
from tasker.orchestration.changes import simple_change
from tasker.orchestration.parked_results import ParkedResultConsumer, ParkingProcessor
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper, SweepSettings
from tasker.services.operators.steps import Steps
from tasker.services.submission.submit import Submission, Submitter
from tasker.services.tasks.read import Tasks
from tasker.settings.execution import Sweep
from tasker.template.plan import Plan
from tests.support.model.model import Model
from tests.support.model.parts import GRACE_MS, HINT_GRACE_MS, LIMIT_MS, PARK_GRACE_MS, RUNS, Key, Pause, Step
from tests.support.world.checks import EMPTY, SNAPSHOT, STILL, check_inputs, compare
from tests.support.world.mail import LOOK_SECONDS, PATIENCE, STRANGE, Entry, mailbox
from tests.support.world.observer import Observer, Submitted
from tests.support.world.parts import NOBODY, Attempt, Half, Handed, WatchedEngine, Worker, result_of, without_claims

START = datetime(2026, 1, 1, tzinfo=UTC)
LEASE_MS = 15_000
ACTOR, ALL = {"actor": "operator", "reason": "by the test"}, 10**9


class World:
    """See the module. `faults` counts what a healthy system never does to itself, `between` who was quicker (no fault).

    `comparisons` counts those of all rows with the model, `sound` is False after a failure, `tell` takes a line for
    each call of the engine.
    """

    sound = False

    def __init__(self, url: str, tell: Callable[[str], None] = print, backend: str | None = None) -> None:
        self._tell = tell
        self._runner = asyncio.Runner()
        quick = "-c jit=off -c synchronous_commit=off -c plan_cache_mode=force_generic_plan"
        self.connection = Connection(url, name="tasker model", settings=quick)
        self.mail = mailbox(url, backend)
        self.engine = WatchedEngine(self.connection, self.mail)
        self.plans = PlanStore(self.connection)
        self.processor = ResultProcessor(self.engine, Half())
        self.parking = ParkingProcessor(self.engine, Half())
        self.orchestrator = ParkedResultConsumer(self.engine, self.processor, self.plans)
        limits = SweepSettings(Sweep(slice=2, hint_grace_ms=HINT_GRACE_MS, park_grace_ms=PARK_GRACE_MS))
        self.sweeper = Sweeper(self.engine, self.processor, self.plans, Half(), limits, without_claims)
        self.operators, self.tasks = Steps(self.engine, self.plans), Tasks(self.engine)
        self.run(self.mail.open())
        self.run(self.connection.execute(STILL))

    def run(self, action: Coroutine[Any, Any, Any]) -> Any:
        self.sound = False
        return self._runner.get_loop().run_until_complete(action)  # `run` would describe it twice, for a signal handler

    def close(self) -> None:
        self.run(self.mail.close())
        self.run(self.connection.close())
        self._runner.close()

    def begin(self, window: int, namespaces: Sequence[str], slots: Sequence[int]) -> None:
        """An empty database, a new model, fresh workers."""
        self.model, self.window = Model(), window
        self.names: dict[str, Key] = {}
        self.faults: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.comparisons = 0
        self.between: Counter[str] = Counter()
        self._observer = Observer(self.model, self.names)
        self.verdicts = self._observer.verdicts
        self.spent: list[tuple[Worker, Attempt]] = []
        self._numbers = 0
        self.engine.begin()
        self.submitter = Submitter(self.engine, self.plans, self._new_task, window=window)
        self.run(self.mail.empty(namespaces))
        self.run(self.connection.execute(EMPTY))
        self._set_time(0)
        self.namespaces = self._observer.namespaces = {name: self._namespace_id(name) for name in namespaces}
        self.workers = [Worker(number, free) for number, free in enumerate(slots)]
        for worker in self.workers:
            self._register(worker)
        self.check()

    # --- actions -----------------------------------------------------------------------------------------------------

    def submit(
        self,
        plan: Plan,
        priorities: Sequence[int],
        keys: Sequence[str],
        by: Handed = NOBODY,
        times: Sequence[Mapping[str, float]] = (),
    ) -> None:
        """Tasks of one template; a key that was used before is a duplicate. `times` are delay and expiry of each."""
        wanted = zip(priorities, keys, times or [{}] * len(keys), strict=True)
        requests = [Submission({"n": n}, p, key, **time) for n, (p, key, time) in enumerate(wanted)]
        answers = self.run(by.submit(self.submitter, plan, requests))
        self._observer.submitted = Submitted.of(plan, answers, requests)
        self.check()
        self._hold(by.worker or self.workers[0], [row._asdict() for row in by.claims], by.answer_lost)

    def claim(self, worker: Worker, hints: Sequence[dict[str, Any]], *, answer_lost: bool = False) -> None:
        """The worker takes these hints, as far as it has free slots."""
        args = {**self.caller_fields(worker), "namespaces": list(self.namespaces)}
        if not args["slots"]:
            return
        answer = self.run(self.engine.take(args, hints))
        self.check()
        self._hold(worker, [row._asdict() for row in answer.claims], answer_lost)
        if (inputs := answer.inputs) is not None:
            check_inputs(self.model, self.names, answer.claims, inputs)
        if answer.release:
            self.release_held(worker, answer.release)

    def release_held(self, worker: Worker, ids: Sequence[int]) -> None:
        """Held steps go into the queue, or to the worker."""
        answer = self.run(self.engine.call("backlog", {**self.caller_fields(worker), "namespace_ids": list(ids)}))
        self.check()
        self._hold(worker, answer.get("claims") or [])

    def finish(
        self, worker: Worker, attempts: Sequence[Attempt], *, answer_lost: bool = False, wait: bool = True
    ) -> None:
        """The worker brings these attempts in one batch over the path `inline`."""
        if not attempts:
            return
        caller = self._bringing(worker, attempts)
        advanced = self.run(self.processor.process(self._results(attempts, caller), caller, wait=wait))
        assert not any(map(advanced.comes_again, advanced.verdicts))
        self.check()
        if not answer_lost:
            self._drop(worker, *attempts)
        self._hold(worker, [row._asdict() for row in advanced.claims], answer_lost)

    def interrupt(self, moment: str, intruder: Callable[[], Awaitable[object]], action: Callable[[], object]) -> bool:
        """The intruder comes between the look `moment` of the action and what follows; whether it did."""
        self.engine.intruder = (moment, intruder)
        action()
        came, self.engine.intruder = self.engine.intruder is None, None
        return came

    def race(self, mine: tuple[Worker, Attempt], other: tuple[Worker, Attempt]) -> None:
        """Between planning what a step creates and writing it, another one of the task decides."""
        caller = self._caller(other[0], 0)
        results = self._results([other[1]], caller)
        intruder = lambda: self.processor.process(results, caller)  # noqa: E731
        if self.interrupt("graph", intruder, lambda: self.finish(mine[0], [mine[1]])):
            self._drop(*other)

    async def give_back(self, step: Step) -> None:
        """Whoever runs the step releases it at this moment."""
        change = simple_change("release", self._ids()[step.key], step.task.id, step.token, step.worker)
        await self.processor.apply([change], self._caller(self.workers[0], 0))

    def _ids(self) -> dict[Key, str]:
        return {key: step for step, key in self.names.items()}

    def meet(self, worker: Worker, attempt: Attempt, sweeper: Worker) -> None:
        """A sweep looks for what is lost; before it takes anything away, this result arrives."""
        caller = self._caller(worker, 0)
        results = self._results([attempt], caller)
        self.interrupt("sweep", lambda: self.processor.process(results, caller), lambda: self.sweep(sweeper))
        self._drop(worker, attempt)

    def park(self, worker: Worker, attempts: Sequence[Attempt], *, answer_lost: bool = False) -> None:
        """The same over the path `queued`: stored, and left to an orchestrator."""
        if not attempts:
            return
        for attempt in attempts:
            attempt.parked = True
        caller = self._bringing(worker, attempts)
        self.run(self.parking.process(self._results(attempts, caller), caller))
        self.check()
        if not answer_lost:
            self._drop(worker, *attempts)

    def orchestrate(self, messages: Sequence[dict[str, Any]]) -> None:
        """An orchestrator takes these messages of the results queue."""
        self.mail.choose(messages)
        self.run(self._orchestrate(len(messages)))
        self.check()

    async def _orchestrate(self, limit: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await self.orchestrator.receive(self._caller(self.workers[0], 0), limit):
                await asyncio.sleep(LOOK_SECONDS)

    def sweep(self, worker: Worker) -> Counter[str]:
        """One sweep; it repairs what the model says, no more and no less, unless somebody comes between."""
        model, alone = self.model, self.engine.intruder is None
        self.run(self.mail.steady())
        expected = Counter(
            lost_worker=len(model.orphans()),
            hint_lost=self.mail.lost_hints(model, self.names),
            result_message_lost=len(model.forgotten_results()),
        )
        repairs = self.run(self.sweeper.sweep(self._caller(worker, 0)))
        self.check()
        self.repaired += repairs
        if alone:
            assert +repairs == +expected, (+repairs, +expected)
            assert not model.orphans()
        return +repairs

    def promote(self, worker: Worker) -> None:
        """Retries that are due run again."""
        answer = self.run(self.engine.call("due", self.caller_fields(worker)))
        self.check()
        assert not self.model.due()
        times = [s.due for s in self.model.waiting()] + [task.expires for task in self.model.tasks.values()]
        waiting = [moment for moment in times if moment is not None]
        assert answer.get("next_due_ms") == (min(waiting) - self.model.now if waiting else None)
        self._hold(worker, answer.get("claims") or [])

    def release(self, worker: Worker, attempts: Sequence[Attempt], delay_ms: int | None = None) -> None:
        """The worker gives claims back: to the queue, or to wait for a moment."""
        kind, when = ("release", {}) if delay_ms is None else ("defer", {"d": delay_ms})
        changes = [{**simple_change(kind, a.row["step"], a.key[0], a.row["token"]), **when} for a in attempts]
        self.run(self.processor.apply(changes, self._caller(worker, 0)))
        self.check()
        self._drop(worker, *attempts)

    def reconcile(self, worker: Worker) -> None:
        """The worker gives back what the engine says it holds and it does not."""
        held = [(a.row["step"], a.row["token"]) for a in worker.running]
        found = self.run(self.engine.read("reconcile", {"worker": worker.identity, "held": held}))["items"]
        known = {(a.key, a.row["token"]) for a in worker.running}
        mine = {(s.key, s.token) for s in self.model.steps(RUNS) if s.worker == worker.identity}
        assert {(self.names[row["s"]], row["k"]) for row in found} == mine - known
        changes = [simple_change("release", row["s"], row["t"], row["k"]) for row in found]
        self.run(self.sweeper.apply(changes, self._caller(worker, 0)))
        self.check()

    def checkpoint(self, attempt: Attempt, cursor: int) -> None:
        args = {"worker": attempt.identity, "step": attempt.row["step"], "token": attempt.row["token"]}
        args |= {"cursor": cursor, "items_processed": cursor}
        args |= {"accumulated_results": None, "timeout_ms": LIMIT_MS, "grace_ms": GRACE_MS}
        self.run(self.engine.read("checkpoint", args))
        self.check()

    def cancel(self, task: str) -> None:
        legal = self.model.tasks[task].state == "open"
        try:
            self.run(self.tasks.cancel(task, reason="by the test"))
        except StateMachineError:
            assert not legal
        self.check()

    def operate(self, step: Step, kind: str, result: Any = None) -> None:
        """An operator resets, resolves or completes the step, or is refused."""
        legal = self.model.legal(step, kind)
        action = getattr(self.operators, kind)
        values = (result,) if kind == "complete" else ()
        try:
            self.run(action(step.task.id, step.name, *values, **ACTOR))
        except StateMachineError:
            assert not legal, (step.key, step.state, kind)
        except OutcomeError:
            assert not self.model.follows(step, result), (step.key, result)
        self.check()

    def pause(self, pause: Pause) -> None:
        self.run(self.engine.call("pause", {**pause.args, **ACTOR}))
        self.check()

    def resume(self, pause: Pause) -> None:
        self.run(self.engine.call("resume", {**pause.args, **ACTOR}))
        self.check()

    def tick(self, milliseconds: int) -> None:
        """Time goes on; workers that live send their beats."""
        self._set_time(self.model.now + milliseconds)
        for worker in self.workers:
            if worker.alive:
                self.beat(worker)
        self.faults["overdue"] += len(self.model.orphans())
        self.faults["orchestrator slow"] += len(self.model.forgotten_results())
        self.check()

    def beat(self, worker: Worker) -> None:
        newest = {a.key: a for a in worker.running}  # of two claims of a step a worker has the later one in hand
        held = [[a.row["step"], a.row["token"]] for a in newest.values()]
        answer = self._worker_call(worker, "beat", held=held)
        lost = {self.names[step] for step in answer.get("lost") or ()}
        steps = {a: self.model.step(a.key) for a in newest.values()}
        valid = {a.key for a, s in steps.items() if (s.state, s.token, s.worker) == (RUNS, a.row["token"], a.identity)}
        assert lost == newest.keys() - valid

    def die(self, worker: Worker) -> None:
        """The worker is gone with everything in its hands; another process takes its place."""
        self.spent += [(worker, attempt) for attempt in worker.running]
        worker.running, worker.alive = [], True
        self._register(worker)

    # --- misfortune of messages --------------------------------------------------------------------------------------

    def rob(self, hint: Entry, what: str) -> None:
        """The hint is lost, doubled, or followed by one to a step that does not exist."""
        self.faults[f"hint {what}"] += 1
        other = {"step": STRANGE} if what == "strange" else {}
        self.run(self.mail.lose(hint) if what == "lost" else self.mail.repeat(hint, **other))
        self.run(self.mail.look(self.connection))
        self.check()

    def rob_results(self, message: Entry, *, lost: bool) -> None:
        """A message to an orchestrator is lost or doubled."""
        self.faults["result message"] += 1
        self.run(self.mail.lose_result(message) if lost else self.mail.send_step_results([message]))
        self.check()

    # --- inside ------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Show the calls to the model, then compare every row with it."""
        snapshot = self.run(self.connection.execute(SNAPSHOT))[0][0]
        self.names |= {row["id"]: (row["task"], row["name"]) for row in snapshot["steps"] or ()}
        calls, self.engine.calls = self.engine.calls, []
        for function, args, answer in calls:
            self._tell(f"  {function} {json.dumps(args)} -> {json.dumps(answer)}")
            self._observer.saw((function, args, answer))
        compare(self.model, snapshot)
        self.comparisons += 1
        self.sound = True

    def _bringing(self, worker: Worker, attempts: Sequence[Attempt]) -> CompletingWorker:
        """The incarnation that brings them: one that was given up brings what it had, and takes nothing new."""
        caller, identity = self._caller(worker), attempts[0].identity
        return caller if identity == worker.identity else replace(caller, worker=identity, slots=0)

    def _results(self, attempts: Sequence[Attempt], caller: CompletingWorker) -> list[Result]:
        results = []
        for attempt in attempts:
            assert attempt.ending is not None
            self.model.endings[attempt.key, attempt.row["token"], caller.worker] = attempt.ending
            results.append(result_of(self.model.step(attempt.key), attempt.row, attempt.ending))
        return results

    def _hold(self, worker: Worker, rows: Sequence[dict[str, Any]], lost: bool = False) -> None:
        if rows and not lost:
            new = [Attempt(self.names[row["step"]], row, worker.identity) for row in rows]
            new_ones = {(a.key, a.row["token"], a.identity) for a in new}  # none twice, after a failover
            worker.running = [a for a in worker.running if (a.key, a.row["token"], a.identity) not in new_ones] + new
            self.spent = [s for s in self.spent if (s[1].key, s[1].row["token"], s[1].identity) not in new_ones]
            found = self.run(self.engine.read("inputs", {"steps": [row["step"] for row in rows], "max_bytes": ALL}))
            claims = [ClaimRow.parse(row) for row in rows]
            check_inputs(self.model, self.names, claims, inputs_of(found))

    def _drop(self, worker: Worker, *attempts: Attempt) -> None:
        self.spent += [(worker, attempt) for attempt in attempts if attempt in worker.running]
        worker.running = [attempt for attempt in worker.running if attempt not in attempts]

    def _caller(self, worker: Worker, slots: int | None = None) -> CompletingWorker:
        free = max(0, worker.slots - len(worker.running)) if slots is None else slots
        ids = list(self.namespaces.values())
        return CompletingWorker(worker.identity, free, ids, sorted(worker.unserved), self.window, LIMIT_MS, GRACE_MS)

    def caller_fields(self, worker: Worker, slots: int | None = None) -> dict[str, Any]:
        """The caller's part of the arguments: by default with all its free slots."""
        return {**self._caller(worker, slots).args(), "limit": ALL, "turn": 0}

    def _register(self, worker: Worker) -> None:
        self._numbers += 1
        worker.identity = f"00000000-0000-7000-8000-{self._numbers:012x}"
        self._worker_call(worker, "start")

    def _worker_call(self, worker: Worker, action: str, **more: Any) -> Answer:
        self.model.leases[worker.identity] = self.model.now + LEASE_MS
        fields = {"host": "here", "pid": 1, "namespaces": list(self.namespaces), "concurrency": worker.slots}
        args = {"action": action, "worker": worker.identity, "lease_ms": LEASE_MS, **fields, **more}
        return dict(self.run(self.engine.read("worker", args)))

    def _new_task(self) -> str:
        self._numbers += 1
        return f"00000000-0000-7000-9000-{self._numbers:06x}000000"

    def _namespace_id(self, name: str) -> int:
        return int(self.run(self.connection.execute("select tasker.namespace_id(%s)", (name,)))[0][0])

    def _set_time(self, milliseconds: int) -> None:
        self.model.now = milliseconds
        text = (START + timedelta(milliseconds=milliseconds)).isoformat()
        self.run(self.connection.execute("select set_config('tasker.now', %s, false)", (text,)))
