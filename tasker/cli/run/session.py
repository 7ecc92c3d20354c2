"""One run of `tasker run`: start, submit or find the task, watch it, stop; and its signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from tasker.__main__ import INTERRUPTED
from tasker.cli.commands.task_submit import name_existing_task
from tasker.cli.covering import seen
from tasker.cli.live.feed import Feed
from tasker.cli.live.showing import View, first_of, show_while_waiting
from tasker.cli.loading import pause_gc
from tasker.cli.run.checks import Prepared, RunRequest, require_fitting, resolve_sources, resume_of
from tasker.cli.target import find_task
from tasker.dataclasses import dataclass
from tasker.errors import DatabaseError, DatabaseUnavailable, HandlerNotFound, ResolutionError
from tasker.process.stopping import end_by_signal

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.handlers.registry.registry import HandlerRegistry
    from tasker.template.plan import Plan
    from tasker.views.tasks import TaskReport

SHOW_CURSOR = "\x1b[?25h"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """State of an interruption: the first signal sets `asked`; the second one prints `last_words` and exits."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.last_words = ""


@contextlib.contextmanager
def interruption() -> Iterator[Interruption]:
    """Handle both signals; restore the former handlers at the end.

    Ordinary signal handlers, so that the second signal works even while a step's handler blocks the event loop.
    """
    loop, interrupted = asyncio.get_running_loop(), Interruption()
    received: list[int] = []
    process = os.getpid()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:
            end_by_signal(number)
        if received:
            leave_at_once(interrupted.last_words)
        received.append(number)
        loop.call_soon_threadsafe(interrupted.asked.set)

    former = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield interrupted
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def leave_at_once(last_words: str) -> NoReturn:
    """Exit the process without waiting. Its claims expire with their leases, and the steps run again."""
    cursor = SHOW_CURSOR if os.isatty(1) or os.isatty(2) else ""
    with contextlib.suppress(OSError):
        os.write(2, f"{cursor}\n{last_words}\n".encode())
    os._exit(INTERRUPTED)


STOP_GRACE_SECONDS = 3.0
INITIATOR = "tasker run"
STOPPING = {
    "interrupted": "stopping; press Ctrl-C again to quit at once",
    "timeout": "timeout reached, stopping",
}


@dataclass(frozen=True, slots=True)
class StartedRun:
    """Task that is about to run, for the view."""

    task_uuid: str
    plan: Plan
    resumed: bool = False
    beside: tuple[int, int] = (0, 0)
    """Other unfinished tasks in a folder's own database: in the namespace that this run serves, and elsewhere."""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """End of the session: `stopped` is None if the task ended, else `interrupted` or `timeout`.

    `already`: the task to be resumed had ended before.
    """

    report: TaskReport
    stopped: str | None = None
    already: bool = False


@dataclass(frozen=True, slots=True)
class RunHooks:
    """Callbacks of a session: before the task runs, and at its end before connections are closed."""

    on_begin: Callable[[StartedRun], View]
    on_end: Callable[[EndedRun], None]


async def run_session(order: RunRequest, prepared: Prepared, hooks: RunHooks) -> EndedRun:
    """Run the task to its end, to `order.timeout` or to an interruption; then its running steps are released.

    Raises the errors of `App.start`, `App.submit` and `find_task`: in these cases there is no task.
    """
    with interruption() as interrupted:
        async with _app(order, prepared) as app:
            if interrupted.asked.is_set():
                raise KeyboardInterrupt  # nothing was submitted
            run = await (_submit(app, order, prepared) if order.resume is None else _find(app, order, order.resume))
            if isinstance(run, StartedRun):
                run = await _watch(app, await _with_others(app, run, prepared), order, interrupted, hooks)
            values = seen(app, order.show_sensitive).sensitive_values
            report = await values.redacted(run.report.task_uuid, run.report)
            hooks.on_end(replace(run, report=report))
            return run


async def _with_others(app: App, begun: StartedRun, prepared: Prepared) -> StartedRun:
    if prepared.configuration.database_url is None:
        with suppress(DatabaseError):  # the view will notice it and show how to continue
            return replace(begun, beside=await app.tasks.open_beside(begun.task_uuid))
    return begun


def _app(order: RunRequest, prepared: Prepared) -> App:
    with pause_gc():
        from tasker.app import worker_assembly as _worker  # noqa: F401  # the app imports it at its start
        from tasker.app.command_app import OneTaskApp

    worker = prepared.configuration.worker
    if order.concurrency:
        worker = replace(worker, dispatch=worker.dispatch.replace(max_concurrent_handlers=order.concurrency))
    return OneTaskApp(
        registry=prepared.registry,
        environment=order.environment,
        data_dir=order.database.data_dir,
        settings=worker,
        configuration=prepared.configuration,
    )


async def _submit(app: App, order: RunRequest, prepared: Prepared) -> StartedRun:
    from tasker.clock import new_task_uuid

    plan = prepared.plan
    if plan is None:
        plan = await app.plan(str(order.target), template=order.template, environment=order.environment)
        require_fitting(plan, prepared.input)
    for child in prepared.children:
        await app.plans.pinned(child, force=True)
    key = order.idempotency_key or (None if order.strict_identity else new_task_uuid())
    with name_existing_task(order.database.arguments()):
        submitted = await app.submit(
            plan,
            prepared.input.values,
            idempotency_key=key,
            priority=order.priority,
            initiator=INITIATOR,
            tags=prepared.tags,
            awaited=True,
        )
    return StartedRun(submitted.task_uuid, plan)


async def _find(app: App, order: RunRequest, resume: str) -> StartedRun | EndedRun:
    report = await app.tasks.report(await find_task(app.tasks, resume))
    return EndedRun(report, already=True) if report.finished else await _resume(app, order, report)


async def _resume(app: App, order: RunRequest, report: TaskReport) -> StartedRun:
    """Resume a task with the handlers of the command line, or else those recorded at its submission."""
    from tasker.services.workflows.files import folder_of

    path, kept_handlers = resolve_sources(report.tags)
    try:
        plan = await app.plans.get(await app.tasks.template_id(report.task_uuid))
        path = folder_of(plan, Path(order.target)) if order.target else path
        _add_handlers(app.registry, plan, path, order.handlers or kept_handlers)
        await app.plan_of(report.task_uuid)
    except ResolutionError as error:
        where = "" if path is None or path.exists() else f" ({path}, where it was submitted, no longer exists)"
        raise HandlerNotFound(
            f"task {report.task_uuid} cannot be resumed here{where}: {error.message}",
            hint=f"give the folder of its handlers: tasker run FOLDER --resume {report.task_uuid}",
        ) from error
    return StartedRun(report.task_uuid, plan, resumed=True)


def _add_handlers(registry: HandlerRegistry, plan: Plan, path: Path | None, sources: Sequence[str]) -> None:
    from tasker.services.workflows.handlers import Workflow, add_handlers, load_neighbouring_handlers

    if path is not None and path.exists():
        load_neighbouring_handlers(registry, [Workflow(plan, path if path.is_dir() else path.parent)])
    add_handlers(registry, sources)


async def _watch(
    app: App, begun: StartedRun, order: RunRequest, interrupted: Interruption, hooks: RunHooks
) -> EndedRun:
    resume = resume_of(order, begun.task_uuid)
    interrupted.last_words = f"Quit. To resume: {resume}"
    try:
        view = hooks.on_begin(begun)
        return await _follow(app, begun, view, order, interrupted.asked)
    except OSError as error:  # the view could not be written
        error.add_note(f"To resume it or see its result: {resume}")
        raise
    except DatabaseError as error:
        raise DatabaseUnavailable(
            f"task {begun.task_uuid} is not finished: {error.message}", hint=f"once the database is back: {resume}"
        ) from error


async def _follow(app: App, begun: StartedRun, view: View, order: RunRequest, asked: asyncio.Event) -> EndedRun:
    """Show the task until it ends or is to be stopped; then stop the worker."""
    feed = Feed(seen(app, order.show_sensitive).tasks, begun.task_uuid)
    async with show_while_waiting(feed, view):
        outcome = await first_of(app.wait(begun.task_uuid), asked, order.timeout)
        if not isinstance(outcome, str):
            return EndedRun(outcome)
        view.say(STOPPING[outcome])
        feed.stopping = True
        await app.stop_working(STOP_GRACE_SECONDS)
    report = await app.tasks.report(begun.task_uuid)
    return EndedRun(report, None if report.finished else outcome)
