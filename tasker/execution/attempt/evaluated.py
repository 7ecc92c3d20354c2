"""Attempts of steps that have expressions in place of a handler, and of those that call it for each item of a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

from tasker.engine.retry import Fail, decide_failure
from tasker.errors import NotStorable
from tasker.execution.attempt.attempt import Attempt, Checkpoint, ClaimLost, Ending, Snooze
from tasker.execution.attempt.settle import make_storable
from tasker.expressions.mapping import MappingFailure
from tasker.handlers.claims import KEPT_EVENTS, Failure, Success, Suspension
from tasker.handlers.evaluated_steps import evaluated_result, item_scopes
from tasker.handlers.step_inputs import failure_of, scope_of
from tasker.json_values import as_stored, encode
from tasker.template.condition_plans import ForEach
from tasker.template.generated_steps import RESULTS

SAVE_EVERY_SECONDS = 0.5
"""Time between two saved positions of an instance. Its worker may die: then the items since the last one run again."""
ItemEnd = Ending | ClaimLost | None
"""Outcome of a call, or of a saved position; None: the position was refused."""
Call = Callable[[Attempt], Awaitable[ItemEnd]]
Save = Callable[[Attempt, Checkpoint], Awaitable[Attempt | Failure | None]]


def evaluate(attempt: Attempt) -> Success | Failure:
    """Return the outcome of a step without a handler."""
    handler = attempt.step.handler.callable
    try:
        return Success(encode(evaluated_result(attempt.step, _scope(attempt)), limit_bytes=attempt.result_limit_bytes))
    except MappingFailure as error:
        return make_storable(replace(failure_of(error), handler=handler))
    except NotStorable as problem:
        return _too_large(problem, handler)


def _scope(attempt: Attempt) -> dict[str, Any]:
    claim = attempt.claim
    ids = (claim.task_uuid, claim.correlation_id, claim.attempt)
    return scope_of(attempt.plan, *ids, attempt.task_context, attempt.dependency_results)


def _too_large(problem: NotStorable, handler: str) -> Failure:
    message = f"the result of {handler} cannot be stored: {problem}"
    return make_storable(Failure(message, problem.error_type, retryable=False, handler=handler))


def _with_events(attempt: Attempt, ending: Success) -> Attempt:
    """Return the attempt for the next item, with the events that the handler has published so far."""
    if not ending.events:
        return attempt
    checkpoint = {**(attempt.claim.checkpoint or {}), KEPT_EVENTS: [event.to_json() for event in ending.events]}
    return replace(attempt, claim=replace(attempt.claim, checkpoint=checkpoint))


class ItemCalls:
    """Calls of the handler of a step with `for_each`, one for each item of its instance.

    An instance of several items saves its position after an item if the last one is old enough, and before it fails,
    so that a further attempt goes on behind it: each position has the results of all items before it. `judged`
    prepares a failure for storing.
    """

    def __init__(
        self,
        attempt: Attempt,
        each: ForEach,
        handler: str,
        call: Call,
        save: Save,
        judged: Callable[[Failure], Failure],
    ) -> None:
        self._attempt, self._each, self._handler = attempt, each, handler
        self._call, self._save, self._judged = call, save, judged
        self._results: list[Any] = []
        self._unsaved: Success | None = None
        self._save_at = monotonic() + SAVE_EVERY_SECONDS

    async def run(self) -> ItemEnd:
        """Return the outcome of the attempt; None: the claim was lost."""
        try:
            inputs, lists = self._attempt.claim.inputs, self._attempt.lists
            scopes = item_scopes(self._each, inputs, _scope(self._attempt), lists)
        except MappingFailure as error:
            return make_storable(replace(failure_of(error), handler=self._handler))
        if not self._alone and (position := self._attempt.claim.checkpoint_data) is not None:
            self._results = list(position["accumulated_results"][RESULTS])
        ending: ItemEnd = None
        for number in range(len(self._results), len(scopes)):
            ending = await self._one(scopes[number][1])
            if not isinstance(ending, Success):
                return await self._ended(ending)
            if number + 1 < len(scopes):
                self._attempt = _with_events(self._attempt, ending)
                self._unsaved = ending
                if monotonic() < self._save_at and not self._attempt.cancel.is_set():
                    continue
                saved = await self._saved(ending)
                if not isinstance(saved, Attempt):
                    return saved
                self._attempt = saved
        return self._complete(ending)

    async def _ended(self, ending: ItemEnd) -> ItemEnd:
        """Save the position of the items before this one, so that a further attempt goes on behind them."""
        if self._unsaved is None:
            return ending
        saved = await self._saved(self._unsaved)
        return None if saved is None else ending

    async def _one(self, scope: Mapping[str, Any]) -> ItemEnd:
        """Call the handler for one item and keep its result; a collected failure is returned as a success."""
        ending = await self._outcome(scope)
        if isinstance(ending, Success):
            result = as_stored(ending.encoded)
            self._results.append({"ok": True, "result": result} if self._collects else result)
        elif isinstance(ending, Failure) and self._collects and self._is_final(failure := self._judged(ending)):
            self._results.append({"ok": False, "error": {"type": failure.error_type, "message": failure.message}})
            return Success(encode({}), events=failure.events)
        return ending

    async def _outcome(self, scope: Mapping[str, Any]) -> ItemEnd:
        attempt = self._attempt
        try:
            inputs = attempt.plan.input_mappings[attempt.step.name].evaluate(scope)
        except MappingFailure as error:
            return make_storable(replace(failure_of(error), handler=self._handler))
        claim = attempt.claim
        if not self._alone and claim.checkpoint is not None:  # the handler of an item knows nothing of the other items
            claim = replace(claim, checkpoint={KEPT_EVENTS: claim.checkpoint.get(KEPT_EVENTS, ())})
        step = replace(attempt.step, result_schema=self._each.result_schema)
        ending = await self._call(replace(attempt, claim=claim, step=step, inputs=inputs))
        if not self._alone and isinstance(ending, Checkpoint):
            message = f"{self._handler} must not yield a checkpoint: `{step.name}` saves one after each item"
            return Failure(f"{message}: write `batch_size: 1`", "checkpoint_in_batch", False, handler=self._handler)
        if not self._alone and (isinstance(ending, Suspension) or (isinstance(ending, Snooze) and ending.state)):
            message = f"{self._handler} must not wait with a state: the items of `{step.name}` share one instance"
            return Failure(f"{message}: write `batch_size: 1`", "wait_in_batch", False, handler=self._handler)
        return ending

    @property
    def _alone(self) -> bool:
        """Return True if each item has an instance of its own, whose checkpoints are those of its handler."""
        return self._each.batch_size == 1

    @property
    def _collects(self) -> bool:
        return self._each.on_error == "collect"

    def _is_final(self, failure: Failure) -> bool:
        """Return whether no further attempt follows, whatever the jitter of its delay."""
        claim = self._attempt.claim
        decision = decide_failure(self._attempt.step.retry, claim.attempt, failure, 1.0, claim.times(monotonic()))
        return isinstance(decision, Fail)

    async def _saved(self, ending: Success) -> Attempt | ItemEnd:
        """Save the position after this item; return the attempt to continue with, or how the attempt ended."""
        self._unsaved, self._save_at = None, monotonic() + SAVE_EVERY_SECONDS
        count = len(self._results)
        position = Checkpoint(count, count, {RESULTS: self._results}, ending.events)
        if not self._attempt.cancel.may_save():
            return position
        saved = await self._save(self._attempt, position)
        return position if isinstance(saved, Attempt) and saved.cancel.is_set() else saved

    def _complete(self, ending: ItemEnd) -> Success | Failure:
        last = ending if isinstance(ending, Success) else Success(encode({}))
        try:
            encoded = encode({RESULTS: self._results}, limit_bytes=self._attempt.result_limit_bytes)
        except NotStorable as problem:
            return _too_large(problem, self._handler)
        metadata = last.metadata if len(self._results) == 1 else {}
        return Success(encoded, metadata, last.events)
