"""Templates in files: found, read, compiled, and checked against handlers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tasker.contracts.plan import Plan, RetryPolicy
from tasker.errors import ResolutionError, TemplateError, UsageError
from tasker.registry.invocation import resolve_for
from tasker.services.handlers import load_handlers
from tasker.template.codes import severity_of
from tasker.template.compile import CompileResult, Origins, compile_text
from tasker.template.diagnostics import Diagnostic
from tasker.template.render import render_text
from tasker.template.retry import DEFAULT_POLICY

WORKFLOW_FILES = ("workflow.yaml", "workflow.yml")
SUFFIXES = (".yaml", ".yml")


def load_path(path: str | Path, environment: str | None = None, retry: RetryPolicy = DEFAULT_POLICY) -> CompileResult:
    """Compile the template file, or every template of a folder (see `find_templates`), for an environment.

    `retry` is the policy of steps that say nothing about retries. Problems inside the files are diagnostics. Raises
    `UsageError` when there is nothing to read.
    """
    return combined([load_file(file, environment, retry) for file in find_templates(path)])


def load_plans(
    path: str | Path, environment: str | None = None, retry: RetryPolicy = DEFAULT_POLICY
) -> tuple[Plan, ...]:
    """The plans of `load_path`. Raises `TemplateError` with every diagnostic when a file holds an error."""
    result = load_path(path, environment, retry)
    if not result.ok:
        raise TemplateError(render_text(result.errors, result.sources), diagnostics=result.diagnostics)
    return result.plans


def find_templates(path: str | Path) -> list[Path]:
    """The file itself; of a folder its `workflow.yaml`, else its YAML files, and the same for the folders below.

    Hidden folders are left out. Raises `UsageError` when the path does not exist or holds no YAML file.
    """
    root = Path(path)
    if not root.exists():
        raise UsageError(f"{root} does not exist", hint="give a template file, or a folder with a workflow.yaml")
    files = [root] if root.is_file() else list(_files_below(root))
    if not files:
        raise UsageError(f"{root} holds no template", hint="a template is a file with the suffix .yaml")
    return files


def load_file(file: Path, environment: str | None = None, retry: RetryPolicy = DEFAULT_POLICY) -> CompileResult:
    """Compile one file. Raises `UsageError` when it cannot be opened."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _not_utf8(file, content, error)
    return compile_text(text, file=str(file), environment=environment, retry=retry)


def combined(results: Sequence[CompileResult]) -> CompileResult:
    """Several results as one, in order."""
    return CompileResult(
        plans=tuple(plan for result in results for plan in result.plans),
        diagnostics=tuple(diagnostic for result in results for diagnostic in result.diagnostics),
        sources={name: text for result in results for name, text in result.sources.items()},
        origins=tuple(origins for result in results for origins in result.origins),
    )


def check_handlers(result: CompileResult, sources: Sequence[str | Path]) -> list[Diagnostic]:
    """A diagnostic for every step whose callable or method cannot be resolved.

    Handlers come from `sources`, from the `handlers.py` beside each template, and from installed packages. Raises
    `HandlerLoadError` when a source cannot be imported.
    """
    return [
        diagnostic
        for plan, origins in zip(result.plans, result.origins, strict=True)
        for diagnostic in _check_plan(plan, origins, sources)
    ]


def _check_plan(plan: Plan, origins: Origins, sources: Sequence[str | Path]) -> Iterator[Diagnostic]:
    registry = load_handlers(sources, beside=Path(origins[plan.steps[0].name].file))
    for step in plan.steps:
        try:
            resolve_for(step, registry)
        except ResolutionError as error:
            origin = origins[step.name]
            message = f"the handler of step `{step.name}` cannot be resolved: {error.message}"
            yield Diagnostic("T035", severity_of("T035"), message, origin.file, *origin.callable, hint=error.hint)


def _files_below(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith("."))
        workflow = [name for name in WORKFLOW_FILES if name in files]
        found = workflow or sorted(name for name in files if name.endswith(SUFFIXES) and not name.startswith("."))
        yield from (Path(folder, name) for name in found)


def _not_utf8(file: Path, content: bytes, error: UnicodeDecodeError) -> CompileResult:
    before = content[: error.start].decode("utf-8", "replace")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    message = f"the byte 0x{content[error.start]:02X} is not UTF-8"
    diagnostic = Diagnostic(
        "T012", severity_of("T012"), message, str(file), line, column, hint="save the file as UTF-8"
    )
    return CompileResult((), (diagnostic,), {str(file): content.decode("utf-8", "replace")})
