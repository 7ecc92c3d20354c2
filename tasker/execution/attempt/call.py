"""One call of a handler, which always returns a value, even if the handler raises or exits."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Token
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tasker.errors import AuthenticationError
from tasker.execution.attempt.attempt import Attempt, Ending, with_events
from tasker.execution.attempt.forked_copies import exit_forked_copy
from tasker.execution.attempt.settle import OutcomeRedactor, result_of_stopped, settle_return_value
from tasker.execution.handler_events import EventBuffer
from tasker.handlers.claims import KEPT_EVENTS, Failure, publishing
from tasker.handlers.context import StepContext
from tasker.handlers.registry.invocation import ResolvedHandler
from tasker.known_secrets import KNOWN
from tasker.logging.current_step import covering, reporter, running

if TYPE_CHECKING:
    from tasker.resources.registry import AttemptResources


async def call_async(attempt: Attempt, handler: ResolvedHandler) -> Ending:
    """Call an async handler. Only a `CancelledError` propagates: the caller knows who cancelled."""
    process, events = os.getpid(), _events(attempt)
    entered = _enter(attempt, events)
    try:
        if attempt.resources is not None and not attempt.resources.are_made(handler.uses):
            await asyncio.to_thread(attempt.resources.acquire, handler.uses)  # it may wait for a provider of secrets
        if attempt.transaction is not None:
            ending: Ending = await attempt.transaction.call_async(context_of(attempt, events), events.taken)
        else:
            value = await handler.call(context_of(attempt, events))
            limit, above = attempt.result_limit_bytes, attempt.dependency_results
            ending = settle_return_value(value, attempt.step, handler.name, limit, above)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # SystemExit too: a handler must not end the worker
        ending = result_of_stopped(error, handler.name)
    finally:
        _leave(attempt, entered)
        exit_forked_copy(process, handler.name)
    if attempt.resources is not None:
        ending = await asyncio.to_thread(_with_renewed, attempt.resources, ending)
    return with_events(ending, events.taken())


def call_blocking(attempt: Attempt, handler: ResolvedHandler) -> Ending:
    """Call a sync or async handler and wait for it here, in a thread or process that may block. Never raises."""
    process, events = os.getpid(), _events(attempt)
    entered = _enter(attempt, events)
    try:
        if handler.kind == "async":
            return _on_a_loop_of_its_own(call_async(attempt, handler))
        if attempt.transaction is not None:
            ending: Ending = attempt.transaction.call(context_of(attempt, events), events.taken)
        else:
            value = handler.call(context_of(attempt, events))
            limit, above = attempt.result_limit_bytes, attempt.dependency_results
            ending = settle_return_value(value, attempt.step, handler.name, limit, above)
    except BaseException as error:
        ending = result_of_stopped(error, handler.name)
    finally:
        _leave(attempt, entered)
        exit_forked_copy(process, handler.name)
    if attempt.resources is not None:
        ending = _with_renewed(attempt.resources, ending)
    return with_events(ending, events.taken())


_log = logging.getLogger("tasker.resources")
CREDENTIALS_ROTATED = "credentials_rotated"


def _with_renewed(resources: AttemptResources, ending: Ending) -> Ending:
    """Return the outcome; a refused authentication becomes retryable if a secret has changed since it was read.

    Each further attempt needs a further change, so a wrong secret fails the step at once.
    """
    if not isinstance(ending, Failure) or ending.error_type != AuthenticationError.error_type:
        return ending
    try:
        renewed = resources.renew()
    except Exception as error:  # the provider cannot be reached: the failure stays what it is
        _log.warning("secrets_not_renewed: %s", KNOWN.redact(f"{type(error).__name__}: {error}"))
        return ending
    if not renewed:
        return ending
    message = f"{ending.message} (the secrets of {', '.join(renewed)} have changed: the next attempt uses the new ones)"
    return replace(ending, message=message, error_type=CREDENTIALS_ROTATED, retryable=True)


class _NotWaitedFor(ThreadPoolExecutor):
    """Default executor of a loop that ends with its handler: running jobs continue, as they do on a worker's loop.

    Waiting for them, as `asyncio.run` does, would delay the handler's return value.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def _on_a_loop_of_its_own(call: Coroutine[Any, Any, Ending]) -> Ending:
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(_NotWaitedFor(thread_name_prefix="asyncio"))
        return runner.run(call)


Entered = tuple[Token[Any], Token[Any], Token[Any], Token[Any], Any]


def _events(attempt: Attempt) -> EventBuffer:
    """Return the buffer for the events of this call, which follow those saved with the step's checkpoint."""
    checkpoint = attempt.claim.checkpoint
    return EventBuffer(checkpoint.get(KEPT_EVENTS, ())) if checkpoint else EventBuffer()


def _enter(attempt: Attempt, events: EventBuffer) -> Entered:
    cover = OutcomeRedactor(attempt).over
    entered = running.set(attempt.claim), reporter.set(attempt.reporter), covering.set(cover), publishing.set(events)
    return (*entered, _own_decimal_context())


def _leave(attempt: Attempt, entered: Entered) -> None:
    if attempt.reporter is not None:
        attempt.reporter.flush()
    *tokens, decimals = entered
    if (decimal := sys.modules.get("decimal")) is not None:
        decimal.setcontext(decimals or decimal.DefaultContext)
    for token in tokens:
        token.var.reset(token)


def _own_decimal_context() -> Any:
    """Give the attempt a copy of the decimal context, so that its changes end with it.

    Return the former context, or None while nothing has imported `decimal`.
    """
    if (decimal := sys.modules.get("decimal")) is None:
        return None
    before = decimal.getcontext()
    decimal.setcontext(before.copy())
    return before


def inputs_of(attempt: Attempt) -> Mapping[str, Any] | None:
    """Return the evaluated inputs of a step that has some, also for code that does not run its handler."""
    if attempt.inputs is not None or attempt.step.inputs is None:
        return attempt.inputs
    from tasker.handlers.step_inputs import mapped_inputs  # needed for steps with expressions only

    inputs = mapped_inputs(attempt.plan, attempt.step, attempt.claim, attempt.task_context, attempt.dependency_results)
    return {} if isinstance(inputs, Failure) else inputs


def context_of(attempt: Attempt, events: EventBuffer | None = None) -> StepContext:
    """Return the context that the attempt's handler is called with; the handler's events go to `events`."""
    return StepContext.build(
        claim=attempt.claim,
        plan=attempt.plan,
        step=attempt.step,
        task_context=attempt.task_context,
        dependency_results=attempt.dependency_results,
        inputs=inputs_of(attempt),
        cancel_flag=attempt.cancel,
        events=events,
        resources=attempt.resources,
        calls=None if attempt.calls is None else partial(attempt.calls, attempt),
        starter=attempt.starter,
    )
