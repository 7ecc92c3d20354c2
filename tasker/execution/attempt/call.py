"""Calling a handler once: whatever it does, what comes back is a value."""

from __future__ import annotations

import asyncio
import os
from contextvars import Token
from typing import Any

from tasker.contracts.reporting import reporter
from tasker.contracts.running import covering, running
from tasker.execution.attempt.covering import Cover
from tasker.execution.attempt.modes.copies import end_copy
from tasker.execution.attempt.outcome import raised, settle, yielded
from tasker.execution.attempt.values import Attempt, Ending
from tasker.registry.invocation import ResolvedHandler
from tasker.step_handler.checkpoint import CheckpointYield
from tasker.types.context import StepContext


async def call_async(attempt: Attempt, handler: ResolvedHandler) -> Ending:
    """Call an async handler. Only a `CancelledError` gets out: the caller knows who cancelled."""
    process, entered = os.getpid(), _enter(attempt)
    try:
        value = await handler.call(_context(attempt))
        return settle(value, attempt.step, handler.name, attempt.result_limit_bytes)
    except asyncio.CancelledError:
        raise
    except CheckpointYield as signal:
        return yielded(signal, handler.name)
    except BaseException as error:  # SystemExit too: a handler must not end the worker (B-146)
        return raised(error, handler.name)
    finally:
        _leave(attempt, entered)
        end_copy(process, handler.name)


def call_blocking(attempt: Attempt, handler: ResolvedHandler) -> Ending:
    """Call a handler of either kind and wait for it here, in a thread or a process that may block. Never raises."""
    process, entered = os.getpid(), _enter(attempt)
    try:
        if handler.kind == "async":
            return asyncio.run(call_async(attempt, handler))
        return settle(handler.call(_context(attempt)), attempt.step, handler.name, attempt.result_limit_bytes)
    except CheckpointYield as signal:
        return yielded(signal, handler.name)
    except BaseException as error:
        return raised(error, handler.name)
    finally:
        _leave(attempt, entered)
        end_copy(process, handler.name)


Entered = tuple[Token[Any], Token[Any], Token[Any]]


def _enter(attempt: Attempt) -> Entered:
    """From here on this context is the attempt's."""
    return running.set(attempt.claim), reporter.set(attempt.reporter), covering.set(Cover(attempt).over)


def _leave(attempt: Attempt, entered: Entered) -> None:
    if attempt.reporter is not None:
        attempt.reporter.flush()
    claim, report, cover = entered
    running.reset(claim)
    reporter.reset(report)
    covering.reset(cover)


def _context(attempt: Attempt) -> StepContext:
    return StepContext.build(
        claim=attempt.claim,
        plan=attempt.plan,
        step=attempt.step,
        task_context=attempt.task_context,
        dependency_results=attempt.dependency_results,
        cancel_flag=attempt.cancel,
    )
