"""A naive model of the engine: tasks as dictionaries of steps, one method for each call, no SQL and no locks.

The world (`tests.support.world.world`) shows it every call and its answer. The model says what must have become of each
change; where the engine has a choice (which ready step is handed over, which is queued, which is held) the model takes
the choice from the answer and checks that it is a legal one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tasker.template.plan import Plan
from tests.support.model.again import again
from tests.support.model.graph import CHOOSERS, Shape, first_steps, grow, too_deep
from tests.support.model.parts import (
    DONE,
    GRACE_MS,
    HINT_GRACE_MS,
    LIMIT_MS,
    PARK_GRACE_MS,
    PARKED,
    QUEUED,
    RUNS,
    Ending,
    Hands,
    Item,
    Key,
    Pause,
    Step,
    Task,
    failure,
    serves,
)
from tests.support.model.releasing import yields

Room = Callable[[str], int]


class Model:
    """All tasks. `now` is milliseconds, `endings` is what attempts came to, `leases` is when workers lose theirs."""

    def __init__(self) -> None:
        self.now = 0
        self.tasks: dict[str, Task] = {}
        self.endings: dict[tuple[Key, int, str | None], Ending] = {}
        self.leases: dict[str, int] = {}
        self.pauses: set[Pause] = set()
        self.ordered: set[str] = set()
        """Namespaces in which a task has had a priority: nothing is enqueued there."""

    def steps(self, *states: str) -> list[Step]:
        found = (step for task in self.tasks.values() for step in task.steps.values())
        return [step for step in found if not states or step.state in states]

    def step(self, key: Key) -> Step:
        return self.tasks[key[0]].steps[key[1]]

    def held(self) -> list[Step]:
        return [step for step in self.steps("pending") if step.held]

    def queued(self) -> Counter[str]:
        return Counter(step.task.plan.namespace for step in self.steps(QUEUED))

    # --- calls -------------------------------------------------------------------------------------------------------

    def submit(
        self,
        template: int,
        plan: Plan,
        tasks: Sequence[tuple[str, int, int, int | None]],
        sent: Sequence[Key],
        claims: Mapping[Key, Item],
        hands: Hands,
    ) -> None:
        """New tasks (id, priority, delay, expiry), and their steps that are enqueued, or claimed by who submits."""
        window = hands.window
        room = self.room(window)
        for task_id, priority, delay, expiry in tasks:
            expires = None if expiry is None else self.now + delay + expiry
            task = self.tasks[task_id] = Task(task_id, template, plan, priority, self.now, expires=expires)
            for name, parents in first_steps(Shape.of(plan)).items():
                task.add(name, name, parents)
        self.ordered |= {plan.namespace for _, priority, *_ in tasks if priority}
        roots = [
            (step, delay) for task, _, delay, _ in tasks for step in self.tasks[task].steps.values() if not step.parents
        ]
        for step, delay in roots:
            step.since = self.now
            if delay or step.plan.delay_seconds:
                step.due = self.now + delay + int((step.plan.delay_seconds or 0) * 1000)
        if any(self.is_paused(step) for step, _ in roots):
            room = lambda namespace: 0  # noqa: E731
        ready = [step for step, _ in roots if not step.timed]
        started = [step for step in ready if step.key in claims]
        served = plan.namespace in hands.namespaces and all(serves(hands, step) for step in ready)
        idle = room(plan.namespace) == window and len(ready) <= min(window, hands.slots)
        idle = idle and not any(delay for _, _, delay, _ in tasks)
        assert started == (ready if hands.worker and served and idle else []), (sorted(claims), hands)
        for step in started:
            self._start(step, claims[step.key], hands)
        if not started:
            self._queue(ready, [self.step(key) for key in sent], room)

    def claim(self, hinted: Iterable[Step], claims: Sequence[Item], claimed: list[Step], hands: Hands) -> None:
        """Hints became claims: exactly those of the steps that are enqueued and served. What is paused is put aside,
        and what was enqueued before its namespace was ordered."""
        queued = {step for step in hinted if step.state == QUEUED}
        for step in filter(self.returns, queued):
            step.stop("pending")
            step.held, step.paused, step.since = True, self.is_marked(step), step.task.created
        wanted = {step.key for step in queued if step.state == QUEUED and serves(hands, step)}
        assert sorted(step.key for step in claimed) == sorted(wanted)
        for step, row in zip(claimed, claims, strict=True):
            self._start(step, row, hands)

    def write(
        self,
        items: Sequence[tuple[Step, Item]],
        verdicts: Mapping[Key, str],
        claims: Mapping[Key, Item],
        sent: Sequence[Key],
        finished: Mapping[str, str],
        hands: Hands,
    ) -> None:
        """One write of changes. Of two changes of one step the one with the newest claim speaks for it."""
        room = self.room(hands.window, released=any(i["kind"] == "unhold" and not s.timed for s, i in items))
        moved, again = [], []
        begun = [step for step, item in items if step.timed and item["kind"] == "unhold"]
        for step, item in _newest(items):
            verdict = verdicts.get(step.key, "accepted")
            self._judge(step, item, verdict)
            if verdict == "accepted":
                self._move(step, item)
                moved.append(step)
                again += [step] if item["kind"] == "release" else []
        first = [step for step, item in items if item["kind"] == "unhold" and step not in begun]
        ready = [s for s in self.steps("pending") if not s.held and not s.timed and not s.unmet and s not in again]
        for step in ready:
            step.since = step.task.created if step in moved and step not in begun else self.now
            if step not in moved and step.plan.delay_seconds:  # once, when it becomes ready
                step.due = self.now + int(step.plan.delay_seconds * 1000)
        ready = [step for step in ready if not step.timed]
        self._place(ready, again, claims, sent, room, hands, first)
        ended = {}
        for task in {step.task for step in moved}:
            former, task.state = task.state, task.should_be()
            if task.state not in ("open", former):
                ended[task.id] = task.state
        assert ended == dict(finished), (ended, finished)

    def park(self, step: Step, item: Item, verdict: str) -> None:
        """A result was stored for an orchestrator."""
        live = step.state == RUNS and (step.token, step.worker) == (item["k"], item["w"])
        assert (verdict == "accepted") == live, (step.key, step.state, step.token, step.worker, item, verdict)
        if not live:
            return
        ending = self.endings[step.key, step.token, step.worker]
        kind, delay = failure(step.plan.retry, step.attempts, ending) if ending.failed else ("ok", None)
        assert (item["kind"], item.get("d")) == (kind, delay), (step.key, item)
        step.stop(PARKED[0] if kind == "ok" else PARKED[1])
        step.parked, step.since = (kind, delay), self.now
        step.failures += kind != "ok"
        step.result = ending.result if kind == "ok" else step.result

    def cancel(self, task: Task) -> None:
        for step in task.steps.values():
            if step.state not in DONE:
                step.stop("cancelled", fence=True)
        task.state, task.expires = "cancelled", None
        self.pauses = {pause for pause in self.pauses if pause.task != task.id}

    def rerun(self, start: Step, task_id: str, sent: Sequence[Key], hands: Hands) -> None:
        """A new task that reuses the results of the one of `start`."""
        room = self.room(hands.window, released=True)
        task = self.tasks[task_id] = again(start, task_id, self.now)
        ready = [step for step in task.steps.values() if step.state == "pending" and not step.unmet]
        for step in ready:
            step.since = self.now
        self._place(ready, [], {}, sent, room, hands, [])

    def pause(self, pause: Pause) -> None:
        """Nothing of it starts from now on; what is held waits for the end of the pause."""
        self.pauses.add(pause)
        self._mark()

    def resume(self, pause: Pause) -> int:
        """The end of a pause; how many held steps wait for room only from now on."""
        before = [step for step in self.held() if self.is_paused(step)]
        self.pauses.discard(pause)
        self._mark()
        return sum(not self.is_paused(step) for step in before)

    def _mark(self) -> None:
        for step in self.held():
            step.paused = self.is_marked(step)

    def checkpoint(self, step: Step, claim: tuple[int, str], cursor: Any, lost: bool) -> None:
        assert lost == (step.state != RUNS or (step.token, step.worker) != claim)
        if not lost:
            step.checkpoint, step.deadline = cursor, self.now + LIMIT_MS + GRACE_MS

    # --- what must be so ---------------------------------------------------------------------------------------------

    def orphans(self) -> list[Step]:
        """Running steps whose deadline has passed or whose worker has lost its lease."""
        return [s for s in self.steps(RUNS) if self.now > (s.deadline or 0) or self.now > self.leases[s.worker or ""]]

    def without_hint(self, hints: set[Key]) -> list[Step]:
        """Enqueued steps that no message points to for long enough."""
        return [
            step
            for step in self.steps(QUEUED)
            if step.key not in hints and self.now - step.hinted[0] > min(2 ** (step.hinted[1] - 1), 64) * HINT_GRACE_MS
        ]

    def forgotten_results(self) -> list[Step]:
        return [step for step in self.steps(*PARKED) if self.now - step.since > PARK_GRACE_MS]

    def waiting(self) -> list[Step]:
        """Steps that wait for a time."""
        return [*self.steps("waiting_for_retry"), *(step for step in self.steps("pending") if step.timed)]

    def due(self) -> list[Step]:
        return [step for step in self.waiting() if (step.due or 0) <= self.now]

    def room(self, window: int, *, released: bool = False) -> Room:
        """How many steps of a namespace may still be enqueued: while others are held, half the window is theirs."""
        queued, held = self.queued(), {step.task.plan.namespace for step in self.held() if not step.paused}
        return lambda name: max(0, (window // 2 if name in held and not released else window) - queued[name])

    def is_paused(self, step: Step) -> bool:
        return any(pause.holds(step) for pause in self.pauses)

    def returns(self, step: Step) -> bool:
        """Whether a claim puts the step of a hint back among those that are held."""
        return self.is_paused(step) or step.task.plan.namespace in self.ordered

    def is_marked(self, step: Step) -> bool:
        """Whether a pause of less than its namespace holds the step: only then its row says so."""
        return any(pause.holds(step) for pause in self.pauses if pause.template or pause.task)

    def legal(self, step: Step, kind: str) -> bool:
        """Whether an operator may do this to the step."""
        if step.task.state not in ("open", "error"):
            return False
        return step.state == "error" if kind == "reset" else step.state not in (*DONE, "cancelled")

    def releasable(self, hands: Hands) -> set[str]:
        """The namespaces whose held steps have room again: half of the window is free."""
        room = self.room(hands.window, released=True)
        waiting = {step.task.plan.namespace for step in self.held() if not self.is_paused(step)}
        waiting &= set(hands.namespaces)
        return {name for name in waiting if room(name) * 2 >= hands.window or name in self.ordered}

    def follows(self, step: Step, result: Any) -> bool:
        """False for a decision or batchable step that says nothing, or that stands too deep."""
        if step.plan.type not in CHOOSERS or result is None:
            return True
        if not any(key.endswith("_outcome") for key in result):
            return False
        return not too_deep(Shape.of(step.task.plan), step.task.present(), step.plan.name)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _judge(self, step: Step, item: Item, verdict: str) -> None:
        about = (step.key, step.state, step.token, dict(item), verdict)
        kind, token = item["kind"], item.get("k")
        assert verdict != "busy", about
        if verdict == "replan":
            assert "gv" in item, about
        elif kind in ("reset", "resolve", "complete"):
            assert (verdict == "accepted") == self.legal(step, kind), about
        elif kind in ("promote", "unhold"):
            assert verdict == "accepted", about
            assert kind == "promote" or step.held or step.timed, about
        else:
            live = step.state == RUNS or (step.state in PARKED and kind not in ("release", "defer"))
            mine = (token, item["w"]) == (step.token, step.worker)
            assert (verdict == "accepted") == (live and mine), about

    def _move(self, step: Step, item: Item) -> None:
        kind = item["kind"]
        if kind in ("ok", "retry", "fail"):
            lost = bool((item.get("n") or {}).get("lost"))
            assert (kind, item.get("d")) == (self._lost(step) if lost else self._expected(step)), (
                step.key,
                item,
            )
            self._end(step, kind, item.get("d"), lost)
        elif kind in ("resolve", "complete"):
            step.stop("resolved_manually" if kind == "resolve" else "complete", fence=True)
            step.result = item.get("r") if kind == "complete" else None
            step.accepted += kind == "complete"
            self._grow(step, step.result)
        elif kind == "defer":
            step.stop("waiting_for_retry", fence=True)
            step.attempts, step.due = step.attempts - 1, self.now + item["d"]
        else:
            step.stop("pending", fence=kind in ("release", "reset"))
            step.attempts = 0 if kind == "reset" else step.attempts - (kind == "release")
            step.worker = None

    def _end(self, step: Step, kind: str, delay: int | None, lost: bool) -> None:
        parked = step.parked is not None
        ending = None if lost else self.endings[step.key, step.token, step.worker]
        step.failures += kind != "ok" and not (parked and kind == step.parked[0])
        if kind == "ok":
            step.stop("complete")
            step.result, step.accepted = ending.result, step.accepted + 1
            self._grow(step, step.result)
            return
        step.stop("waiting_for_retry" if kind == "retry" else "error", fence=lost)
        step.result = None
        step.due = self.now + (delay or 0) if kind == "retry" else None

    def _expected(self, step: Step) -> tuple[str, int | None]:
        """The change that the attempt's ending means."""
        if step.parked is not None and step.parked[0] != "ok":
            return step.parked
        ending = self.endings[step.key, step.token, step.worker]
        if ending.failed:
            return failure(step.plan.retry, step.attempts, ending)
        return ("ok", None) if self.follows(step, ending.result) else ("fail", None)

    def _lost(self, step: Step) -> tuple[str, int | None]:
        assert step in self.orphans(), (step.key, step.worker, step.deadline, self.now)
        return failure(
            step.plan.retry, step.attempts, Ending(failed=True, retryable=step.plan.on_worker_lost != "fail")
        )

    def _grow(self, step: Step, result: Any) -> None:
        if step.plan.type in CHOOSERS:
            task = step.task
            for name, (template, parents) in grow(Shape.of(task.plan), task.present(), step.plan.name, result).items():
                task.add(name, template, parents)

    def _place(
        self,
        ready: list[Step],
        again: list[Step],
        claims: Mapping[Key, Item],
        sent: Sequence[Key],
        room: Room,
        hands: Hands,
        first: list[Step],
    ) -> None:
        """Hand over what the caller can run, the most urgent first; queue what finds room; hold the rest. `first` were
        held, and are the most urgent ones."""
        served = [s for s in ready if s.task.plan.namespace in hands.namespaces and serves(hands, s)]
        able = [s for s in served if not self.is_paused(s) and (s in first or not yields(self, s))]
        taken = [s for s in able if s.key in claims]
        left = [s for s in able if s.key not in claims]
        assert len(taken) == len(claims) == min(hands.slots, len(able)), (sorted(claims), [s.key for s in able], hands)
        assert min((s.task.priority for s in taken), default=0) >= max(
            (s.task.priority for s in left), default=-99
        ) or not (taken and left)
        for step in taken:
            self._start(step, claims[step.key], hands)
        for step in again:
            if step.task.plan.namespace in self.ordered:
                step.held, step.paused, step.since = True, self.is_marked(step), step.task.created
            else:
                self._enqueue(step)
        repeated = {step.key for step in again}
        queued = [self.step(key) for key in sent if key not in repeated]
        self._queue([s for s in ready if s not in taken], queued, room)

    def _queue(self, ready: list[Step], queued: list[Step], room: Room) -> None:
        for namespace in {step.task.plan.namespace for step in ready}:
            mine = [s for s in ready if s.task.plan.namespace == namespace and not self.is_paused(s)]
            now = [step for step in queued if step.task.plan.namespace == namespace]
            free = 0 if namespace in self.ordered else room(namespace)
            assert len(now) == min(free, len(mine)), (free, [s.key for s in mine], [s.key for s in now])
            assert [s.task.priority for s in now] == sorted((s.task.priority for s in mine), reverse=True)[: len(now)]
        assert all(step in ready for step in queued), [step.key for step in queued]
        for step in ready:
            if step in queued:
                self._enqueue(step)
            else:
                step.held, step.paused = True, self.is_marked(step)

    def _enqueue(self, step: Step) -> None:
        step.state, step.held, step.hinted = QUEUED, False, (self.now, 1)

    def _start(self, step: Step, row: Item, hands: Hands) -> None:
        step.state, step.held, step.worker = RUNS, False, hands.worker
        step.token, step.attempts, step.claims = step.token + 1, step.attempts + 1, step.claims + 1
        step.deadline = self.now + LIMIT_MS + GRACE_MS
        found = (row["token"], row["attempt"], (row.get("checkpoint") or {}).get("cursor"))
        assert found == (step.token, step.attempts, step.checkpoint), (step.key, found)


def _newest(items: Sequence[tuple[Step, Item]]) -> list[tuple[Step, Item]]:
    newest: dict[Key, tuple[Step, Item]] = {}
    for step, item in items:
        if step.key not in newest or (item.get("k") or 0) > (newest[step.key][1].get("k") or 0):
            newest[step.key] = (step, item)
    return list(newest.values())
