"""Templates in files: finding, reading, compiling, and checking against handlers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tasker.errors import DeclarationMismatch, HandlerLoadError, ResolutionError, TemplateError, UsageError
from tasker.handlers.registry.invocation import resolve_for
from tasker.handlers.registry.suggestions import explain_missing_callable
from tasker.handlers.registry.workflow_handlers import HANDLERS_FILE
from tasker.services.workflows.contracts import ContractCount, contract_problems
from tasker.services.workflows.handlers import (
    Workflow,
    function_of,
    handlers_folder,
    load_handlers,
    load_neighbouring_handlers,
    misfits,
)
from tasker.services.workflows.targets import resolve_path
from tasker.template.builtin import plugin_of
from tasker.template.compile import CompiledStep, CompileResult, Places, compile_text
from tasker.template.diagnostics import Diagnostic, did_you_mean, severity_of
from tasker.template.diff import Version
from tasker.template.plan import Plan
from tasker.template.plugin_rules import TemplateRules
from tasker.template.report import render_text

if TYPE_CHECKING:
    from tasker.handlers.builtin import BuiltinHandler

WORKFLOW_FILES = ("workflow.yaml", "workflow.yml")
SUFFIXES = (".yaml", ".yml")
SCENARIOS = ".scenario.yaml"
"""Suffix of files with cases for tests, which are no templates."""


def load_path(
    path: str | Path, environment: str | None = None, rules: TemplateRules = (), strict: bool = False
) -> CompileResult:
    """Compile the template file, or every template of a folder (see `find_templates`), for an environment.

    Problems in the files and violations of plugin `rules` are returned as diagnostics. Raises `UsageError` if there is
    nothing to read.
    """
    return combined([load_file(file, environment, rules, strict) for file in find_templates(path)])


def load_plans(
    path: str | Path, environment: str | None = None, rules: TemplateRules = (), *, named: bool = False
) -> tuple[Plan, ...]:
    """Return the plans of `load_path`. Raises `TemplateError` with every diagnostic if a file has an error.

    `named` means that the user named the environment: `UsageError` is then raised if no template has it.
    """
    return tuple(workflow.plan for workflow in load_workflows(path, environment, rules, named=named))


def load_workflows(
    path: str | Path, environment: str | None = None, rules: TemplateRules = (), *, named: bool = False
) -> tuple[Workflow, ...]:
    """Return the plans of `load_plans` with the folders of their handlers (see `load_neighbouring_handlers`)."""
    result = load_path(path, environment, rules)
    if not result.ok:
        raise TemplateError(render_text(result.errors, result.sources), diagnostics=result.diagnostics)
    if named:
        require_environment(result, environment)
    return workflows_of(result, Path(path))


def load_versions(path: str | Path, environment: str | None = None, rules: TemplateRules = ()) -> list[Version]:
    """Return the plans of `load_path` with their positions. Raises `TemplateError`, `UsageError`."""
    result = load_path(path, environment, rules)
    if not result.ok:
        raise TemplateError(render_text(result.errors, result.sources), diagnostics=result.diagnostics)
    require_environment(result, environment)
    return [Version(plan, places) for plan, places in zip(result.plans, result.places, strict=True)]


def workflows_of(result: CompileResult, root: Path) -> tuple[Workflow, ...]:
    """Return the plans of a result with their folders; `root` is the compiled path."""
    files = (Path(origins[plan.steps[0].name].file) for plan, origins in zip(result.plans, result.origins, strict=True))
    return tuple(
        Workflow(
            plan,
            handlers_folder(file, root),
            {step: f"{at.file}:{at.callable[0]}" for step, at in origins.items()},
            origins,
        )
        for plan, file, origins in zip(result.plans, files, result.origins, strict=True)
    )


def folder_of(plan: Plan, path: Path) -> Path:
    """Return the folder below `path` with a registered template's file, or `path` if it has handlers itself."""
    if not path.is_dir() or (path / HANDLERS_FILE).is_file():
        return path
    try:
        workflows = workflows_of(load_path(path), path)
    except UsageError:  # it has no templates either
        return path
    names = (plan.namespace, plan.name)
    return next(
        (workflow.folder for workflow in workflows if (workflow.plan.namespace, workflow.plan.name) == names), path
    )


def require_environment(result: CompileResult, environment: str | None) -> None:
    """Raise `UsageError` for an environment that none of the templates has; None is allowed."""
    if environment is None or environment in result.environments:
        return
    known = sorted(result.environments)
    has = f"they have: {', '.join(known)}" if known else "they define no environments: remove --env"
    raise UsageError(
        f"no template of {', '.join(result.sources)} has the environment {environment!r}",
        hint=did_you_mean(environment, known) or has,
    )


def find_templates(path: str | Path) -> list[Path]:
    """Return the file itself, or the `workflow.yaml`, else the YAML files, of a folder and each folder below.

    Hidden folders and scenario files are skipped.

    Raises `UsageError` if the path does not exist or contains no YAML file.
    """
    root = Path(path)
    if not root.exists():
        hint = resolve_path(root) or "expected a template file or a folder with a workflow.yaml"
        raise UsageError(f"{root} does not exist", hint=hint)
    files = [root] if root.is_file() else list(_files_below(root))
    if not files:
        raise UsageError(f"{root} contains no template", hint="a template is a file with the suffix .yaml")
    return files


def load_file(
    file: Path, environment: str | None = None, rules: TemplateRules = (), strict: bool = False
) -> CompileResult:
    """Compile one file. Raises `UsageError` if it cannot be opened."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _not_utf8(file, content, error)
    return compile_text(text, file=str(file), environment=environment, rules=rules, strict=strict)


def combined(results: Sequence[CompileResult]) -> CompileResult:
    """Merge several results into one, in order."""
    return CompileResult(
        plans=tuple(plan for result in results for plan in result.plans),
        diagnostics=tuple(diagnostic for result in results for diagnostic in result.diagnostics),
        sources={name: text for result in results for name, text in result.sources.items()},
        origins=tuple(origins for result in results for origins in result.origins),
        environments=frozenset(name for result in results for name in result.environments),
        places=tuple(places for result in results for places in result.places),
    )


NO_STEPS: Mapping[str, type[BuiltinHandler]] = MappingProxyType({})


def check_handlers(
    result: CompileResult,
    root: Path,
    sources: Sequence[str | Path],
    steps: Mapping[str, type[BuiltinHandler]] = NO_STEPS,
    contracts: ContractCount | None = None,
) -> list[Diagnostic]:
    """Return a diagnostic for each handler that is missing, cannot be called, or reads what its step cannot have.

    Handlers come from the `handlers.py` beside each template, from `sources`, from installed packages, and from plugins
    (`steps`, by name); steps of Tasker's own plugins need none here. Without `sources`, a template that has no
    `handlers.py` is not checked. What handlers read is compared with the schemas above them, which `contracts` counts.
    A `handlers.py` that cannot be imported is a diagnostic of its own. Raises `HandlerLoadError` when a source cannot
    be imported.
    """
    workflows, count = workflows_of(result, root), contracts or ContractCount()
    return [
        diagnostic
        for workflow, places in zip(workflows, result.places, strict=True)
        if sources or (workflow.folder / HANDLERS_FILE).is_file()
        for diagnostic in _check_workflow(workflow, places, sources, steps, count)
    ]


def _check_workflow(
    workflow: Workflow,
    places: Places,
    sources: Sequence[str | Path],
    steps: Mapping[str, type[BuiltinHandler]],
    count: ContractCount,
) -> Iterator[Diagnostic]:
    registry, plan, origins = load_handlers(sources), workflow.plan, workflow.origins
    registry.provide_steps(steps)
    try:
        load_neighbouring_handlers(registry, [workflow])
    except HandlerLoadError as error:
        file = str(workflow.folder / HANDLERS_FILE)
        yield Diagnostic("T035", severity_of("T035"), error.message, file, error.line or 1, 1, hint=error.hint)
        return
    bare = registry.bare_folders(plan.id)
    for step in plan.steps:
        origin = origins[step.name]

        def problem(code: str, message: str, hint: str | None, origin: CompiledStep = origin) -> Diagnostic:
            return Diagnostic(code, severity_of(code), message, origin.file, *origin.callable, hint=hint)

        if not step.has_handler or plugin_of(step.handler.callable) is not None:
            continue
        try:
            handler = resolve_for(step, registry, plan.id)
        except DeclarationMismatch as error:
            yield problem("T035", f"the handler of step `{step.name}` cannot be called: {error.message}", error.hint)
        except ResolutionError as error:
            message = f"the handler of step `{step.name}` cannot be resolved: {error.message}"
            yield problem("T035", message, explain_missing_callable([step.handler.callable], bare) or error.hint)
        else:
            yield from (problem("T037", misfit.message, misfit.hint) for misfit in misfits(plan, step, handler))
            if (function := function_of(handler)) is not None:
                for found in contract_problems(plan, step, function, count):
                    line = places.of(*found.path).line
                    yield problem(found.code, f"{found.message} ({origin.file}:{line})", found.hint)
        yield from _unknown_publishers(step.name, origin)


def _unknown_publishers(step: str, origin: CompiledStep) -> Iterator[Diagnostic]:
    if not origin.publishers:
        return
    from tasker.handlers.events.registries import PublisherRegistry

    known = PublisherRegistry.instance().list_publishers()
    for name, place in origin.publishers:
        if name not in known:
            message = (
                f"no handlers file registers the publisher `{name}` of step `{step}`: the result as it is would "
                f"be published"
            )
            hint = did_you_mean(name, known) or "derive it from BasePublisher in the handlers.py beside the template"
            yield Diagnostic("T075", severity_of("T075"), message, origin.file, *place, hint=hint)


def _files_below(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith("."))
        workflow = [name for name in WORKFLOW_FILES if name in files]
        selected = workflow or sorted(filter(_may_be_template, files))
        yield from (Path(folder, name) for name in selected)


def _may_be_template(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.endswith(SCENARIOS) and not name.startswith(".")


def _not_utf8(file: Path, content: bytes, error: UnicodeDecodeError) -> CompileResult:
    before = content[: error.start].decode("utf-8", "replace")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    message = f"the byte 0x{content[error.start]:02X} is not UTF-8"
    diagnostic = Diagnostic(
        "T012", severity_of("T012"), message, str(file), line, column, hint="save the file as UTF-8"
    )
    return CompileResult((), (diagnostic,), {str(file): content.decode("utf-8", "replace")})
