"""Closing a runner: what runs may finish, what does not is given back."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import AttemptCancelled, ClaimLost, ClaimReleased, UnreportedEnd
from tasker.execution.custom_publishers import CustomPublishers
from tasker.execution.event_bus import AcceptedEventBus
from tasker.execution.report_buffer import ReportBuffer
from tasker.execution.report_writer import ReportWriter
from tasker.execution.step_execution import StepExecution
from tasker.handlers.events.poller import InProcessChannel
from tasker.logging.current_step import ProgressReport
from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import PATIENCE, Bench


class Waits(StepHandler):
    def __init__(self) -> None:
        self.started, self.let_go = asyncio.Event(), asyncio.Event()

    async def call(self, context: StepContext) -> StepHandlerResult:
        self.started.set()
        await self.let_go.wait()
        return self.success({"done": True})


async def test_what_finishes_within_the_grace_is_reported(bench: Bench) -> None:
    handler = Waits()
    running = asyncio.ensure_future(bench.end(bench.attempt(handler)))
    await handler.started.wait()
    closing = asyncio.ensure_future(bench.runner.close(PATIENCE))
    await asyncio.sleep(0)

    handler.let_go.set()

    assert isinstance(await running, Result)
    await closing


async def test_what_does_not_finish_is_released(bench: Bench) -> None:
    handler = Waits()
    running = asyncio.ensure_future(bench.end(bench.attempt(handler)))
    await handler.started.wait()

    await bench.runner.close(0)

    assert isinstance(await running, ClaimReleased)


@pytest.mark.parametrize("end", [ClaimReleased, AttemptCancelled, ClaimLost])
async def test_a_thread_that_does_not_finish_is_left_behind(bench: Bench, end: type[UnreportedEnd]) -> None:
    started, let_go = threading.Event(), threading.Event()

    class Handler(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            started.set()
            let_go.wait(PATIENCE)
            return self.success({})

    attempt = bench.attempt(Handler)
    running = asyncio.ensure_future(bench.runner.run(attempt))
    assert await asyncio.to_thread(started.wait, PATIENCE)
    if end is not ClaimReleased:
        attempt.cancel.set(end)

    await bench.runner.close(0)

    assert running.done()
    assert isinstance(await running, end)
    assert len(bench.leaked) == 1
    let_go.set()


async def test_a_closed_runner_takes_nothing(bench: Bench) -> None:
    await bench.runner.close(0)

    end = await bench.run(Waits)

    assert isinstance(end, ClaimReleased)
    assert end.reason == "the worker is closing"


class Broken:
    """An engine that fails as nobody expects it."""

    async def read(self, function: str, args: Any) -> dict[str, Any]:
        raise RuntimeError("a defect")


async def test_reports_that_cannot_be_written_do_not_keep_a_worker_from_closing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    nothing: Any = None
    reports, bus = ReportBuffer(logging.INFO, 10), AcceptedEventBus(CustomPublishers(1), channel=InProcessChannel())
    reports.of(bench.attempt(callable="x").claim).progress(ProgressReport(0.5))
    writer = ReportWriter(reports, Broken())  # type: ignore[arg-type]
    execution = StepExecution(nothing, nothing, nothing, nothing, bench.runner, nothing, bus, writer)

    await execution.close()

    assert "reports_not_stored" in caplog.text
