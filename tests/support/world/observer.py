"""Shows the calls of the engine to the model: one method for each function, named like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasker.engine.calls import Answer
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template.plan import Plan
from tests.support.model.expiry import expire, expired
from tests.support.model.model import Model
from tests.support.model.parts import QUEUED, Hands, Key, Pause, Step
from tests.support.model.releasing import check_release
from tests.support.world.parts import Call


@dataclass
class Submitted:
    """What was asked for last: the plan, and priority, delay and expiry of each task that is no duplicate."""

    plan: Plan | None = None
    wishes: dict[str, tuple[int, int, int | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, answers: Sequence[object], requests: Sequence[Submission]) -> Submitted:
        """From the answers to these requests, in their order."""
        pairs = zip(answers, requests, strict=True)
        created = [(answer.task_uuid, r) for answer, r in pairs if isinstance(answer, SubmissionResult)]
        return cls(plan, {task: (r.priority, _ms(r.delay) or 0, _ms(r.expires_in)) for task, r in created})


class Observer:
    """`names` gives the task and name of a step by its identifier, `namespaces` the identifiers of namespaces."""

    def __init__(self, model: Model, names: Mapping[str, Key]) -> None:
        self.model, self.names = model, names
        self.namespaces: dict[str, int] = {}
        self.submitted = Submitted()
        self.verdicts: Counter[str] = Counter()

    def saw(self, call: Call) -> None:
        """Raises `AssertionError` when the model would have done otherwise."""
        function, args, answer = call
        if observe := getattr(self, function, None):
            observe(args, answer)

    def submit(self, args: dict[str, Any], answer: Answer) -> None:
        created = [(task, *self.submitted.wishes[task]) for task in answer["created"]]
        assert {task for task, *_ in created} == set(self.submitted.wishes)
        if created:
            claims = {self.names[row["step"]]: row for row in answer.get("claims") or ()}
            plan, sent = self.submitted.plan, self._keys(answer)
            self.model.submit(args["template"], plan, created, sent, claims, self._hands(args))

    def claim(self, args: dict[str, Any], answer: Answer) -> None:
        hinted = [self.model.step(self.names[step]) for step in args["steps"] if step in self.names]
        claims = answer.get("claims") or []
        refused = {step.key for step in hinted if step.state == QUEUED and not self.model.returns(step)}
        aside = {step.key for step in hinted if step.state == QUEUED and self.model.returns(step)}
        claimed = [self.model.step(self.names[row["step"]]) for row in claims]
        self.model.claim(hinted, claims, claimed, self._hands(args))
        assert set(self._keys(answer)) == refused - {step.key for step in claimed}
        verdicts = {step: "unknown" for step in args["steps"] if step not in self.names}
        verdicts |= {step: "held" for step in args["steps"] if self.names.get(step) in aside}
        assert (answer.get("verdicts") or {}) == verdicts
        releasable = self.model.releasable(self._hands(args))
        assert set(answer.get("release") or ()) == {self.namespaces[name] for name in releasable}

    def advance(self, args: dict[str, Any], answer: Answer) -> None:
        items = [{"w": args["worker"], **item} for item in args["items"]]
        self._write(args, answer, [(self.model.step(self.names[item["s"]]), item) for item in items])

    def operator_change(self, args: dict[str, Any], answer: Answer) -> None:
        item = {key: value for key, value in args.items() if key not in ("task", "step")}
        self._write({}, answer, [(self.model.step((args["task"], args["step"])), item)])

    def due(self, args: dict[str, Any], answer: Answer) -> None:
        due = self.model.due()
        assert (answer.get("promoted") or 0) == len(due) + len(expired(self.model))
        kinds = [(step, "unhold" if step.timed else "promote") for step in due]
        finished = answer.get("finished") or {}
        gone = {task: state for task, state in finished.items() if state == "cancelled"}  # by no promotion
        rest = {**answer, "finished": {task: state for task, state in finished.items() if task not in gone}}
        self._write(args, rest, [(step, {"kind": kind, "k": step.token}) for step, kind in kinds])
        expire(self.model, gone)

    def backlog(self, args: dict[str, Any], answer: Answer) -> None:
        moved = [self.names[row["step"]] for row in answer.get("claims") or ()] + self._keys(answer)
        chosen = [self.model.step(key) for key in moved]
        check_release(self.model, chosen, self._hands(args))
        self._write(args, answer, [(step, {"kind": "unhold", "k": step.token}) for step in chosen])

    def park(self, args: dict[str, Any], answer: Answer) -> None:
        parked = {self.names[row["step"]] for row in answer.get("parked") or ()}
        for item in ({**item, "w": args["worker"]} for item in _last_of_each(args["items"])):
            key = self.names[item["s"]]
            self.model.park(self.model.step(key), item, "accepted" if key in parked else answer["verdicts"][item["s"]])

    def cancel(self, args: dict[str, Any], answer: Answer) -> None:
        if answer["cancelled"]:
            self.model.cancel(self.model.tasks[args["task"]])

    def rerun(self, args: dict[str, Any], answer: Answer) -> None:
        start = self.model.step((args["task"], args["n"]["from"]))
        self.verdicts["reused"] += answer["reused"]
        self.model.rerun(start, answer["created"], self._keys(answer), self._hands(args))

    def pause(self, args: dict[str, Any], answer: Answer) -> None:
        pause = self._pause(args)
        ended = "task" in args and self.model.tasks[args["task"]].state != "open"
        assert ("final" in answer) == ended, answer
        if not ended:
            assert answer["paused"] == (pause not in self.model.pauses)
            self.model.pause(pause)

    def resume(self, args: dict[str, Any], answer: Answer) -> None:
        pause = self._pause(args)
        assert answer["resumed"] == (pause in self.model.pauses)
        assert (answer.get("held") or 0) == self.model.resume(pause)

    def _pause(self, args: dict[str, Any]) -> Pause:
        namespace = self.model.tasks[args["task"]].plan.namespace if "task" in args else args["namespace"]
        return Pause(namespace, args.get("template"), args.get("step"), args.get("task"))

    def checkpoint(self, args: dict[str, Any], answer: Answer) -> None:
        step = self.model.step(self.names[args["step"]])
        self.model.checkpoint(step, (args["token"], args["worker"]), args["cursor"], answer.get("lost", False))

    def wakeups_sent(self, args: dict[str, Any], answer: Answer) -> None:
        for step in (self.model.step(key) for key in self._keys(answer)):
            step.hinted = (self.model.now, step.hinted[1] + 1)

    def evaluate(self, args: dict[str, Any], answer: Answer) -> None:
        raise AssertionError(f"a task had to be settled by the sweep: {args}")

    def _write(self, args: dict[str, Any], answer: Answer, items: list[tuple[Step, dict[str, Any]]]) -> None:
        verdicts = {self.names[step]: verdict for step, verdict in (answer.get("verdicts") or {}).items()}
        self.verdicts.update(f"verdict {verdict}" for verdict in verdicts.values())
        claims = {self.names[row["step"]]: row for row in answer.get("claims") or ()}
        finished = answer.get("finished") or {}
        self.model.write(items, verdicts, claims, self._keys(answer), finished, self._hands(args))

    def _keys(self, answer: Answer) -> list[Key]:
        return [self.names[hint["step"]] for hint in answer["send"]]

    def _hands(self, args: dict[str, Any]) -> Hands:
        served = tuple(name for name, number in self.namespaces.items() if number in args.get("namespace_ids", ()))
        unserved = tuple(args.get("unserved", ()))
        return Hands(args.get("worker"), args.get("slots", 0), args.get("window", 2000), served, unserved)


def _last_of_each(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    newest: dict[str, dict[str, Any]] = {}
    for item in items:
        if item["s"] not in newest or item["k"] > newest[item["s"]]["k"]:
            newest[item["s"]] = item
    return list(newest.values())


def _ms(seconds: object) -> int | None:
    return round(seconds * 1000) if isinstance(seconds, int | float) else None
