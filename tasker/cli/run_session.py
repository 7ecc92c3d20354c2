"""Running one task: start, submit or find it, watch it to its end, and stop in good order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasker.cli.live import Feed, View
from tasker.cli.run_order import Prepared, RunOrder, kept_sources, require_fitting
from tasker.cli.run_signals import Interruption, interruption
from tasker.cli.task_lookup import find_task
from tasker.errors import DatabaseError, DatabaseUnavailable, HandlerNotFound, ResolutionError

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.contracts.plan import Plan
    from tasker.handler import HandlerRegistry
    from tasker.services.reports import TaskReport

STOP_GRACE_SECONDS = 3.0
INITIATOR = "tasker run"
STOPPING = {
    "interrupted": "stopping, Ctrl-C again to quit at once",
    "timeout": "the time is up, stopping",
}
NO_ANSWER = "the database does not answer, waiting for it"
ANSWERS_AGAIN = "the database answers again"
BUSY_SHARE = 10
"""The view waits this many times as long as its query took: watching must not slow down what is watched."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The task to be run, for the view."""

    task_uuid: str
    plan: Plan
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """How the session ended: `stopped` is None when the task did, else `interrupted` or `timeout`.

    `already`: the task to be resumed had ended before.
    """

    report: TaskReport
    stopped: str | None = None
    already: bool = False


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the session tells: the task before it runs, its end before everything is closed."""

    on_begin: Callable[[Begun], View]
    on_end: Callable[[Ended], None]


async def run_session(order: RunOrder, prepared: Prepared, hooks: Hooks) -> Ended:
    """Run the task to its end, to `order.timeout` or to an interruption; then its steps are given back.

    Raises what `App.start`, `App.submit` and `find_task` raise: then there is no task.
    """
    with interruption() as interrupted:
        async with _app(order, prepared) as app:
            ended = await _run(app, order, prepared, interrupted, hooks)
            hooks.on_end(ended)
            return ended


async def _run(app: App, order: RunOrder, prepared: Prepared, interrupted: Interruption, hooks: Hooks) -> Ended:
    if interrupted.asked.is_set():
        raise KeyboardInterrupt  # nothing was submitted
    if order.resume is None:
        return await _watch(app, await _submit(app, order, prepared), order, interrupted, hooks)
    report = await app.tasks.report(await find_task(app.tasks, order.resume))
    if report.finished:
        return Ended(report, already=True)
    return await _watch(app, await _resume(app, order, report), order, interrupted, hooks)


def _app(order: RunOrder, prepared: Prepared) -> App:
    from tasker.app import App

    worker = prepared.configuration.worker
    return App(
        registry=prepared.registry,
        environment=order.environment,
        data_dir=order.database.data_dir,
        settings=replace(worker, concurrency=order.concurrency) if order.concurrency else worker,
        configuration=prepared.configuration,
    )


async def _submit(app: App, order: RunOrder, prepared: Prepared) -> Begun:
    from tasker.app.system import new_task_uuid

    plan = prepared.plan
    if plan is None:
        plan = await app.plan(str(order.target), template=order.template, environment=order.environment)
        require_fitting(plan, prepared.input)
    key = order.idempotency_key or (None if order.strict_identity else new_task_uuid())
    submitted = await app.submit(
        plan,
        prepared.input.values,
        idempotency_key=key,
        priority=order.priority,
        initiator=INITIATOR,
        tags=prepared.tags,
    )
    return Begun(submitted.task_uuid, plan)


async def _resume(app: App, order: RunOrder, report: TaskReport) -> Begun:
    """Handlers come from the command line; what is missing there, from where the task was submitted."""
    kept_path, kept_handlers = kept_sources(report.tags)
    path = Path(order.target) if order.target else kept_path
    try:
        _add_handlers(app.registry, path, order.handlers or kept_handlers)
        plan = await app.plan_of(report.task_uuid)
    except ResolutionError as error:
        where = "" if path is None or path.exists() else f" ({path}, where it was submitted, does not exist any more)"
        raise HandlerNotFound(
            f"task {report.task_uuid} cannot be resumed here{where}: {error.message}",
            hint=f"name the folder of its handlers: tasker run FOLDER --resume {report.task_uuid}",
        ) from error
    return Begun(report.task_uuid, plan, resumed=True)


def _add_handlers(registry: HandlerRegistry, path: Path | None, sources: Sequence[str]) -> None:
    from tasker.services.handlers import add_handlers_beside

    if path is not None and path.exists():
        add_handlers_beside(registry, path)
    for source in sources:
        if Path(source).exists():
            registry.discover_path(Path(source))
        else:
            registry.discover_handlers(source)


async def _watch(app: App, begun: Begun, order: RunOrder, interrupted: Interruption, hooks: Hooks) -> Ended:
    resume = f"tasker run --resume {begun.task_uuid}{order.database.arguments()}"
    interrupted.last_words = f"Quit. To go on: {resume}"
    view = hooks.on_begin(begun)
    try:
        stopped = await _follow(app, begun, view, order.timeout, interrupted.asked)
        report = await app.tasks.report(begun.task_uuid)
    except DatabaseError as error:
        raise DatabaseUnavailable(
            f"task {begun.task_uuid} is not finished: {error.message}", hint=f"when the database is back: {resume}"
        ) from error
    return Ended(report, None if report.finished else stopped)


async def _follow(app: App, begun: Begun, view: View, timeout: float | None, asked: asyncio.Event) -> str | None:
    """Show the task until it ends or is to be stopped, and stop it then; why it was stopped."""
    feed = Feed(app.tasks, begun.task_uuid)
    showing = asyncio.create_task(_show(feed, view))
    try:
        stopped = await _first(app.wait(begun.task_uuid), asked, timeout)
        if stopped is not None:
            view.say(STOPPING[stopped])
            await app.stop_working(STOP_GRACE_SECONDS)
        return stopped
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        with contextlib.suppress(DatabaseError):  # the error that ended the wait is on its way
            view.show(feed, await feed.poll())
        view.close()


async def _first(waiting: Coroutine[Any, Any, Any], asked: asyncio.Event, timeout: float | None) -> str | None:
    """Wait for the end of the task, for an interruption, for the time limit; which of the last two came first."""
    end = asyncio.create_task(waiting)
    interrupted = asyncio.create_task(asked.wait())
    try:
        await asyncio.wait([end, interrupted], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if end.done():
            await end
            return None
        return "interrupted" if interrupted.done() else "timeout"
    finally:
        for task in (end, interrupted):
            task.cancel()
        await asyncio.gather(end, interrupted, return_exceptions=True)


async def _show(feed: Feed, view: View) -> None:
    loop = asyncio.get_running_loop()
    answered = True
    while True:
        began = loop.time()
        try:
            view.show(feed, await feed.poll())
            if not answered:
                view.say(ANSWERS_AGAIN)
            answered = True
        except DatabaseError:
            if answered:
                view.say(NO_ANSWER)
            answered = False
        await asyncio.sleep(max(view.interval, (loop.time() - began) * BUSY_SHARE))
