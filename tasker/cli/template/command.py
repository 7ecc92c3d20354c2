"""`tasker template`: check, draw and print templates. Needs no database."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tasker.cli.connection import format_option, print_as
from tasker.cli.guessing import GuessingGroup, WorkflowPath
from tasker.cli.plugin import plugged_rules
from tasker.cli.run.json_output import reserved_stdout
from tasker.cli.template.registered import list_templates, register
from tasker.contracts.plan import Plan
from tasker.services.authoring.templates import check_handlers, combined, load_path, load_plans, require_environment
from tasker.template.codes import Severity
from tasker.template.diagnostics import Diagnostic
from tasker.template.draw import FORMATS, graph_data
from tasker.template.output.json_schema import template_schema
from tasker.template.output.normalized import normalized, normalized_yaml
from tasker.template.output.render import render_text, to_json
from tasker.template.output.sarif import to_sarif

PATH = WorkflowPath()


def _environment_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--env", "environment", metavar="NAME", help="Apply the overrides of this environment.")(
        command
    )


@click.group(cls=GuessingGroup)
def template() -> None:
    """Validate, draw, describe and register templates."""


template.add_command(list_templates)
template.add_command(register)


@template.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@_environment_option
@click.option(
    "--handlers",
    metavar="MODULE_OR_FOLDER",
    multiple=True,
    help="More handlers, beside those in the handlers.py of the template's folder; repeatable.",
)
@format_option("text", "json", "sarif")
def validate(paths: tuple[Path, ...], environment: str | None, handlers: tuple[str, ...], form: str) -> None:
    """Report every problem of the templates in files and folders, and of the handlers beside them.

    Where a handlers.py lies beside a template, or --handlers names some, every step needs a handler that fits it.
    Silent, and exit code 0, when there is none. Warnings are shown and leave the exit code at 0; with an error it is 1.
    """
    rules = plugged_rules()
    results = [load_path(path, environment, rules) for path in paths]
    if all(result.ok for result in results):
        require_environment(combined(results), environment)
    diagnostics: list[Diagnostic] = []
    with reserved_stdout():  # modules of handlers may print
        for path, result in zip(paths, results, strict=True):
            diagnostics += [*result.diagnostics, *check_handlers(result, path, handlers)]
    _print(list(dict.fromkeys(diagnostics)), combined(results).sources, form)
    if any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics):
        raise click.exceptions.Exit(1)


@template.command()
def schema() -> None:
    """Print the JSON Schema of templates, which editors use for completion and validation."""
    click.echo(json.dumps(template_schema(), indent=2))


@template.command()
@click.argument("path", type=PATH)
@format_option("text", "json", "mermaid", "dot")
def graph(path: Path, form: str) -> None:
    """Draw the dependency graph of a template's steps."""
    plans = load_plans(path)
    print_as(form, [_with_graph(plan) for plan in plans], lambda _: "\n\n".join(FORMATS[form](each) for each in plans))


@template.command()
@click.argument("path", type=PATH)
@_environment_option
@format_option("yaml", "json")
def show(path: Path, environment: str | None, form: str) -> None:
    """Print a template as Tasker reads it: canonical keys, defaults filled in, overrides applied."""
    plans = load_plans(path, environment, named=True)
    if form == "json":
        print_as(form, [normalized(plan) for plan in plans], str)
    else:
        click.echo("---\n".join(map(normalized_yaml, plans)), nl=False)


def _with_graph(plan: Plan) -> dict[str, Any]:
    return {"namespace": plan.namespace, "name": plan.name, "version": plan.version, **graph_data(plan)}


def _print(diagnostics: Sequence[Diagnostic], sources: Mapping[str, str], form: str) -> None:
    if form == "json":
        click.echo(to_json(diagnostics))
    elif form == "sarif":
        click.echo(to_sarif(diagnostics))
    elif diagnostics:
        click.echo(f"{render_text(diagnostics, sources)}\n\n{_summary(diagnostics)}")


def _summary(diagnostics: Sequence[Diagnostic]) -> str:
    errors = sum(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
    return f"{_count(errors, 'error')}, {_count(len(diagnostics) - errors, 'warning')}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
