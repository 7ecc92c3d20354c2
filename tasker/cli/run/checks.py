"""Request of `tasker run`, and all checks that need no database."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from tasker.cli.connection import ROOT_VARIABLE, configured_for, require_database
from tasker.cli.options import DatabaseOption
from tasker.cli.render.outcome import resume_command
from tasker.cli.run.input import TaskInput, read_input
from tasker.dataclasses import dataclass
from tasker.errors import InputInvalid, TemplateNotFound, UsageError

if TYPE_CHECKING:
    from tasker.app.configured import Configured
    from tasker.handlers.registry.registry import HandlerRegistry
    from tasker.services.workflows.handlers import Workflow
    from tasker.template.plan import Plan
    from tasker.template.schema_check import SchemaMismatch

PATH_VARIABLE, CONFIGURATION_FILE = "TASKER_CONFIG_PATH", "worker.toml"
PATH_TAG, HANDLERS_TAG = "path:", "handlers:"
"""Tags of a task that record the location of its handlers, for `--resume`."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Parsed command line. `timeout` in seconds; `resume` is a task's identifier or a prefix of it."""

    target: str | None = None
    input: str | None = None
    settings: Sequence[str] = ()
    template: str | None = None
    environment: str | None = None
    handlers: Sequence[str] = ()
    database: DatabaseOption = field(default_factory=DatabaseOption)
    idempotency_key: str | None = None
    strict_identity: bool = False
    priority: int | None = None
    timeout: float | None = None
    concurrency: int | None = None
    resume: str | None = None
    show_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """Result of the checks: handlers, input, tags, configuration, and the plan unless it is in the database."""

    registry: HandlerRegistry
    input: TaskInput
    tags: Sequence[str]
    configuration: Configured
    plan: Plan | None
    children: Sequence[Plan] = ()
    """Templates beside it whose tasks its steps start."""


def check_order(order: RunRequest) -> None:
    """Raise `UsageError` for options that exclude each other."""
    if order.resume is None and order.target is None:
        raise UsageError(
            "nothing to run",
            hint="give a template file, a folder with workflow.yaml, namespace/name, or --resume TASK_UUID",
        )
    if order.resume is not None and (order.input is not None or order.settings or order.environment is not None):
        raise UsageError("--resume uses the input of the task; omit --input, --set and --env")
    if order.strict_identity and order.idempotency_key is not None:
        raise UsageError("--strict-identity and --idempotency-key exclude each other")


def prepare_order(order: RunRequest) -> Prepared:
    """Read the template, its handlers and the input, and check that they fit together.

    Raises `UsageError`, `TemplateError`, `HandlerLoadError`, `HandlerNotFound`, `InputInvalid`, `ConfigurationError`.
    """
    from tasker.plugins.contributions import handlers_of
    from tasker.plugins.host import plugins_of
    from tasker.services.workflows.handlers import load_handlers, load_neighbouring_handlers, require_handlers

    path, own = existing_path(order.target), own_configuration(order)
    configuration = configured_for(order.database, environ={**os.environ, **({PATH_VARIABLE: str(own)} if own else {})})
    if path is None or order.resume is not None:
        _require_what_is_kept(order, configuration)
    task_input = read_input(order.input, order.settings, folder=_input_folder(path), read_stdin=sys.stdin.read)
    workflow, children = _compiled(path, order, configuration) if path and order.resume is None else (None, [])
    registry = load_handlers(order.handlers if order.resume is None else (), configuration.importable)
    registry.provide_steps(handlers_of(plugins_of(configuration.plugins)))
    if workflow is not None:
        load_neighbouring_handlers(registry, [workflow, *children])
        for each in (workflow, *children):
            require_handlers(registry, each.plan, each.lines)
        require_fitting(workflow.plan, task_input)
    tags = _tags(workflow.folder if workflow else None, order.handlers)
    plan = workflow.plan if workflow else None
    return Prepared(registry, task_input, tags, configuration, plan, [each.plan for each in children])


def require_fitting(plan: Plan, given: TaskInput) -> None:
    """Raise `InputInvalid` with each position where the input does not match the template's `input_schema`."""
    from tasker.services.submission.check import input_problems

    problems = input_problems(plan, given.values)
    if problems:
        lines = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
        raise InputInvalid(
            f"invalid input for {plan.namespace}/{plan.name} {plan.version} (input: {given.source})\n{lines}",
            problems=problems,
            hint=_text_hint(problems, given.parsed),
        )


def existing_path(target: str | None) -> Path | None:
    """Return the target as a path; None for the name of a registered template, and without a target.

    Raises `UsageError` for a path that does not exist.
    """
    from tasker.services.workflows.targets import registered_name

    if target is None:
        return None
    if not target:
        raise UsageError("PATH is empty", hint="`.` is the current folder")
    path = Path(target)
    if path.exists():
        return path
    registered_name(target)
    return None


def own_configuration(order: RunRequest, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the configuration file in the folder of the template; None if there is none or a variable names another.

    The file of the template's folder is for trying it out: workers read only what a variable names.
    """
    if order.target is None or any(environ.get(name) for name in (PATH_VARIABLE, ROOT_VARIABLE)):
        return None
    folder = _input_folder(Path(order.target) if Path(order.target).exists() else None)
    file = folder / CONFIGURATION_FILE if folder else None
    return file if file is not None and file.is_file() else None


def resume_of(order: RunRequest, task_uuid: str) -> str:
    """Return the command that resumes the task of this request.

    What the task itself records (template, folder, handlers) is not repeated, unless it was named to resume it, or the
    folder has a configuration of its own.
    """
    repeated = order.resume is not None or own_configuration(order) is not None
    named = (order.target, order.handlers) if repeated else (None, ())
    return resume_command(task_uuid, order.database.arguments(), *named)


def resolve_sources(tags: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Return the folder of the template's handlers and the values of `--handlers`, from a task's tags."""
    paths = [Path(tag.removeprefix(PATH_TAG)) for tag in tags if tag.startswith(PATH_TAG)]
    handlers = [tag.removeprefix(HANDLERS_TAG) for tag in tags if tag.startswith(HANDLERS_TAG)]
    return (paths[0] if paths else None), handlers


def _require_what_is_kept(order: RunRequest, configuration: Configured) -> None:
    """Require an existing database: a task to be resumed and a registered template can only be in one."""
    from tasker.services.workflows.targets import unknown_target

    try:
        require_database(configuration.database_url, order.database.data_dir)
    except UsageError as error:
        if order.resume is not None:
            raise
        with unknown_target(str(order.target)):
            raise TemplateNotFound(
                f"no template {order.target} is registered: {error.message}", hint=error.hint
            ) from error


def _compiled(path: Path, order: RunRequest, configuration: Configured) -> tuple[Workflow, list[Workflow]]:
    """Return the workflow, and those beside it whose tasks it starts."""
    from tasker.plugins.contributions import rules_of
    from tasker.plugins.host import plugins_of
    from tasker.services.workflows.files import load_workflows
    from tasker.services.workflows.targets import choose_workflow, workflows_started

    environment, rules = order.environment, rules_of(plugins_of(configuration.plugins))
    workflows = load_workflows(path, environment or configuration.environment, rules, named=environment is not None)
    workflow = choose_workflow(workflows, order.template, str(path))
    return workflow, workflows_started(workflow, workflows)


def _input_folder(path: Path | None) -> Path | None:
    """Return the folder whose `input.json` applies: a target folder, or that of a `workflow.yaml`, else None."""
    if path is None or path.is_dir():
        return path
    return path.parent if path.stem == "workflow" else None


def _tags(folder: Path | None, handlers: Sequence[str]) -> list[str]:
    from tasker.services.workflows.handlers import located

    tags = [f"{PATH_TAG}{folder.resolve()}"] if folder else []
    sources = [location.resolve() if isinstance(location := located(item), Path) else location for item in handlers]
    return tags + [f"{HANDLERS_TAG}{source}" for source in sources]


def _text_hint(problems: Sequence[SchemaMismatch], parsed: Mapping[str, str]) -> str | None:
    places = {problem.path for problem in problems if problem.message.startswith("expected text")}
    for key, text in parsed.items():
        if f"$.{key}" in places:
            return f"--set reads a value as JSON where it can; to pass {text} as text: --set '{key}=\"{text}\"'"
    return None
