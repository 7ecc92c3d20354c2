"""`simulate`: one run of a template, without a database."""

from __future__ import annotations

import asyncio
import random as chance
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.check import require_fit
from tasker.services.workflows.files import load_workflows
from tasker.services.workflows.handlers import Workflow, load_handlers, load_neighbouring_handlers
from tasker.services.workflows.targets import choose_workflow, workflows_started
from tasker.simulation.calls import StepCalls
from tasker.simulation.gates import gates_of
from tasker.simulation.mock_checks import Strictness
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.run import SimulatedTask
from tasker.simulation.samples import sampled
from tasker.template.plan import Plan


def simulate(
    target: str | Path | Plan,
    values: Mapping[str, Any] | None = None,
    mocks: Mapping[str, Any] | None = None,
    *,
    mock_all: bool = False,
    handlers: HandlerRegistry | None = None,
    resources: Mapping[str, Any] | None = None,
    template: str | None = None,
    environment: str | None = None,
    at: datetime | None = None,
    seed: int | None = None,
    slots: int | None = None,
    strictness: Strictness = "strict",
    templates: Sequence[Plan] = (),
) -> SimulatedRun:
    """Run a template on a virtual clock, with the engine's own decisions, and return what happened.

    Steps with expressions and built-in steps without effects are evaluated. Every other step that runs needs a mock,
    unless `handlers` are given.

    Args:
        target: A template file, a folder, or a compiled plan.
        values: Input of the task.
        mocks: For each step a result, a mock of `tasker.testing.simulation.mock`, or a function in place of its
            handler. `TEMPLATE/STEP` is a step of child tasks, whose template is in the same file or folder.
        mock_all: Mock every other step that would call a handler: with a value that fits its `result_schema`, else {}.
        handlers: Real handlers for the steps without a mock.
        resources: What `context.resource` and `@uses` give the handlers, by name.
        template: Name of the template, for a folder with several.
        environment: Environment of the template.
        at: Start of the task; by default now.
        seed: Seed of the jitter of retries; without one every delay is in the middle of its jitter.
        slots: Number of steps that run at the same time; by default all that are ready.
        strictness: Check of mocked results against `result_schema`: `strict`, `present` (fields may be missing) or
            `none`.
        templates: Templates of child tasks, in addition to a compiled plan.

    Raises:
        TemplateError: The template has errors.
        UsageError: A step has neither mock nor handler, or a mock does not fit the template.
        InputInvalid: The input does not fit the `input_schema`.
    """
    if isinstance(target, Plan):
        plan = target
    else:
        workflow, started = workflow_and_started(target, template, environment)
        plan, templates = workflow.plan, [each.plan for each in started]
    given = dict(values or {})
    require_fit(plan, given)
    chosen = {**(sampled(plan, mocks or {}) if mock_all else {}), **(mocks or {})}
    calls = StepCalls(plan, given, chosen, handlers, resources, strictness, templates)
    task = SimulatedTask(
        plan,
        given,
        calls,
        at=at or datetime.now(UTC),
        random=(lambda: 0.5) if seed is None else chance.Random(seed).random,
        slots=slots,
        gates=gates_of(plan, given),
    )
    outside_of_loops(task.run)
    return SimulatedRun(task, calls.inputs, calls.events)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def outside_of_loops(run: Callable[[], None]) -> None:
    """Call `run`, which runs event loops of its own, in another thread if one runs in this thread."""
    if not _in_a_loop():
        return run()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, run).result()


def workflow_of(target: str | Path, template: str | None = None, environment: str | None = None) -> Workflow:
    """Return the workflow of a file or folder. Raises `TemplateError`, and `UsageError` if there are several."""
    return workflow_and_started(target, template, environment)[0]


def workflow_and_started(
    target: str | Path, template: str | None = None, environment: str | None = None
) -> tuple[Workflow, list[Workflow]]:
    """Return the workflow as `workflow_of`, and those of the file or folder whose tasks it starts."""
    workflows = load_workflows(target, environment, named=environment is not None)
    workflow = choose_workflow(workflows, template, str(target))
    return workflow, workflows_started(workflow, workflows)


def real_handlers(
    workflow: Workflow, sources: tuple[str | Path, ...] = (), started: Sequence[Workflow] = ()
) -> HandlerRegistry:
    """Return the handlers beside a workflow and those that it starts, and those of `sources`."""
    registry = load_handlers(sources)
    load_neighbouring_handlers(registry, [workflow, *started])
    return registry
