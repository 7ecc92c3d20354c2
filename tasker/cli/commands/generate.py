"""`tasker generate`: code and tests made of templates, and schemas made of code."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import click

from tasker.cli.commands.plugin import plugged_rules
from tasker.cli.connection import FORMAT, print_as
from tasker.cli.run.input import reserved_stdout
from tasker.cli.suggestions import GuessingGroup, WorkflowPath
from tasker.errors import UsageError
from tasker.services.workflows.files import load_workflows
from tasker.services.workflows.generated_parts import generated_part, with_generated_part
from tasker.services.workflows.handlers import Workflow

TYPES_FILE = "workflow_types.py"
FAILED = 1


@click.group(cls=GuessingGroup)
def generate() -> None:
    """Generate models, handlers and scenarios from templates, and schemas from handlers."""


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    path = click.argument("path", type=WorkflowPath())
    check = click.option("--check", is_flag=True, help="Write nothing; exit code 1 if something would be written.")
    return path(check(FORMAT(command)))


@generate.command("types")
@_options
def types_(path: Path, check: bool, form: str) -> None:
    """Write a pydantic model for the input, and one for each result with a schema, beside each template.

    The file workflow_types.py has a generated part, which is replaced; everything outside of it is kept.

    \b
    Examples:
      tasker generate types workflows
      tasker generate types workflows --check
    """
    from tasker.template.python_types import python_types

    files = {}
    for folder, workflows in _by_folder(path):
        file = folder / TYPES_FILE
        parts = [python_types(workflow.plan) for workflow in workflows]
        body = parts[0] + "".join(part.partition("Field\n")[2] for part in parts[1:])
        before = _read(file)
        old = generated_part(before, "types")
        same = old is not None and _same_code(old, body)
        files[file] = before if same else with_generated_part(before, "types", body)
    _write(files, check, form)


@generate.command()
@_options
def handlers(path: Path, check: bool, form: str) -> None:
    """Add a function to handlers.py for each step that has no handler; it fails until you write it.

    Existing code is never changed. --check lists the steps without a handler.

    \b
    Example:
      tasker generate handlers orders
    """
    from tasker.services.workflows.handler_stubs import NAMES, handler_stub

    files, missing = {}, []
    for folder, workflows in _by_folder(path):
        file = folder / "handlers.py"
        text = _read(file)
        stubs = {
            step.handler.callable: handler_stub(workflow.plan, step)
            for workflow in workflows
            for step in _without_handler(workflow)
        }
        code = "\n\n" + "\n\n".join(stubs.values())
        used = [name for name in NAMES if f"@{name}(" in code]
        imports = f"from tasker.step_handler import {', '.join(used)}\n"
        if text:
            imports = f"\n\n{imports}"  # below code that may use the same names otherwise
        files[file] = f"{text.rstrip()}{chr(10) if text else ''}{imports}{code}" if stubs else text
        missing += [f"{file}: no handler {name}" for name in stubs]
    _write(files, check, form, missing if check else ())


@generate.command()
@_options
def scenarios(path: Path, check: bool, form: str) -> None:
    """Write a scenario file beside each template, whose cases reach as much of its graph as mocks can.

    Each case says what the simulated run came to: read it before you trust it. The file NAME.generated.scenario.yaml
    has a generated part, which is replaced; cases that you add below it are kept.

    \b
    Examples:
      tasker generate scenarios orders && pytest orders
      tasker generate scenarios workflows --check
    """
    from tasker.simulation.generated_cases import generated_cases

    files, coverage = {}, []
    for _, workflows in _by_folder(path):
        for workflow in workflows:
            source = Path(next(iter(workflow.origins.values())).file)
            with reserved_stdout():  # steps that log may print
                cases = generated_cases(workflow.plan, source.name, workflow.lines, _usual_input(source.parent))
            missing = [f"# not reached: {item}" for item in cases.coverage.missing]
            file = source.parent / f"{workflow.plan.name}.generated.scenario.yaml"
            body = "\n".join([*missing, cases.text])
            files[file] = with_generated_part(_read(file), "scenarios", body)
            coverage.append(f"{file}: coverage {cases.coverage.percent:.0f}%")
    _write(files, check, form, coverage)


@generate.command()
@click.argument("source", metavar="MODULE_OR_FILE")
def schema(source: str) -> None:
    """Print a result_schema for each function with a return annotation, by the name of its handler.

    The output is JSON. MODULE_OR_FILE is a Python file, a folder with handlers.py, or a module name.

    \b
    Example:
      tasker generate schema orders/handlers.py
    """
    from tasker.handlers.function_handlers import FunctionHandler
    from tasker.services.workflows.handlers import load_handlers

    registry = load_handlers([source])
    found = {}
    for name in registry.list_handlers():
        handler = registry.get_handler_class(name)
        if isinstance(handler, type) and issubclass(handler, FunctionHandler):
            schema_ = _schema_of_result(handler.function)
            if schema_ is not None:
                found[name] = schema_
    if not found:
        raise UsageError(
            f"no function of {source} says what it returns",
            hint="annotate it with a model, a dataclass or a TypedDict: `def charge(...) -> Receipt:`",
        )
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))


def _schema_of_result(function: Callable[..., Any]) -> Any:
    from pydantic.errors import PydanticUserError

    from tasker.handlers.binding import adapter_of

    try:
        annotation = get_type_hints(function).get("return")
        if annotation is None or annotation is Any:
            return None
        made = adapter_of(annotation).json_schema(mode="serialization")
    except (PydanticUserError, NameError, TypeError):
        return None
    return made if made.get("type") == "object" or "$ref" in made else None


def _by_folder(path: Path) -> Iterator[tuple[Path, Sequence[Workflow]]]:
    workflows: dict[Path, list[Workflow]] = {}
    for workflow in load_workflows(path, rules=plugged_rules()):
        workflows.setdefault(workflow.folder, []).append(workflow)
    yield from workflows.items()


def _without_handler(workflow: Workflow) -> Iterator[Any]:
    from tasker.services.workflows.handlers import load_handlers, load_neighbouring_handlers, missing_callables
    from tasker.template.builtin import BUILTIN

    registry = load_handlers([])
    load_neighbouring_handlers(registry, [workflow])
    missing = {item.step for item in missing_callables(registry, workflow.plan)}
    return (s for s in workflow.plan.steps if s.name in missing and s.handler.callable not in BUILTIN)


def _usual_input(folder: Path) -> dict[str, Any] | None:
    """Return the content of the folder's input.json, as `tasker run` reads it, or None without such a file."""
    from tasker.cli.run.input import read_input

    return read_input(None, (), folder=folder, read_stdin=str).values if (folder / "input.json").exists() else None


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _same_code(old: str, new: str) -> bool:
    """Return whether two texts are the same code, however a formatter has written it."""
    try:
        return ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    except SyntaxError:
        return False


def _write(files: dict[Path, str], check: bool, form: str, notes: Sequence[str] = ()) -> None:
    """Write the files that differ; with `check` name them, and exit with 1 if there are any."""
    changed = {file: text for file, text in files.items() if text != _read(file)}
    for file, text in changed.items():
        if not check:
            file.write_text(text, encoding="utf-8")
    word = "would write" if check else "wrote"
    lines = [*notes, *(f"{word} {file}" for file in changed)]
    if lines or form == "json":
        report = {"written": [] if check else list(changed), "outdated": list(changed) if check else [], "notes": notes}
        print_as(form, report, lambda _: "\n".join(lines))
    if check and changed:
        raise click.exceptions.Exit(FAILED)
