"""`tasker template`: validate, show, draw, register and list templates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands.plugin import plugged_handlers, plugged_rules
from tasker.cli.commands.template_diff import diff
from tasker.cli.connection import FORMAT, connected, format_option, print_as
from tasker.cli.render.values import date_time, table
from tasker.cli.run.input import reserved_stdout
from tasker.cli.suggestions import GuessingGroup, WorkflowPath
from tasker.cli.target import DatabaseTarget, FleetTarget, fleet_options, require_known_filter, run_on_fleet
from tasker.errors import UsageError
from tasker.services.wording import one_line
from tasker.services.workflows.contracts import ContractCount
from tasker.services.workflows.files import (
    check_handlers,
    combined,
    load_path,
    load_plans,
    load_workflows,
    require_environment,
)
from tasker.services.workflows.handlers import Workflow
from tasker.template.diagnostics import Diagnostic, Severity
from tasker.template.drawing import FORMATS, graph_data
from tasker.template.normalized import normalized, normalized_yaml
from tasker.template.plan import Plan
from tasker.template.report import render_text, template_schema, to_json, to_sarif

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.cli.remote.fleet import Fleet


@click.command("list")
@click.option("--namespace", metavar="NAME", help="Filter by namespace.")
@click.option("--name", metavar="NAME", help="Filter by template name.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=1000,
    show_default=True,
    help="Maximum number of template versions.",
)
@FORMAT
@fleet_options
def list_templates(namespace: str | None, name: str | None, limit: int, form: str, place: FleetTarget) -> None:
    """List the registered templates; `tasker run NAMESPACE/NAME[:VERSION]` runs one.

    \b
    Examples:
      tasker template list --namespace shop
      tasker template list --limit 10000 --format json
    """
    from tasker.engine.plans import TemplateFilter

    async def read(app: Fleet) -> Sequence[Any]:
        rows = await app.plans.registered(TemplateFilter(namespace, name), limit=limit + 1)
        return await require_known_filter(app, rows, namespace, name)

    templates = run_on_fleet(place, read)
    print_as(form, templates[:limit], _text)
    if len(templates) > limit:
        click.echo(f"there are more than {limit} templates; see --limit and --namespace", err=True)


@click.command()
@click.argument("paths", type=WorkflowPath(), nargs=-1)
@click.option("--env", "environment", metavar="NAME", help="Apply the overrides of this environment.")
@click.option(
    "--force", is_flag=True, help="Replace a version that has different content; running tasks keep the old one."
)
@FORMAT
@fleet_options
def register(paths: tuple[Path, ...], environment: str | None, force: bool, form: str, place: FleetTarget) -> None:
    """Register the templates of files and folders, so that they can be run by name.

    Without a path it registers those of installed packages (entry points `tasker.templates`).

    \b
    Examples:
      tasker template register workflows/order_fulfillment
      tasker run fulfillment/order_fulfillment --handlers workflows/order_fulfillment --input @order.json
    """

    sources = paths or _installed()
    rules = plugged_rules()
    workflows = [each for path in sources for each in load_workflows(path, environment, rules, named=True)]
    plans = [workflow.plan for workflow in workflows]
    if isinstance(place, DatabaseTarget):
        connected(
            place.database, partial(_store, workflows=workflows, force=force), create=True, operates=True, several=True
        )
    else:
        run_on_fleet(place, partial(_send, paths=sources, environment=environment, force=force))
    done = [{"namespace": plan.namespace, "name": plan.name, "version": plan.version} for plan in plans]
    print_as(form, {"registered": done}, _registered_text)


def _installed() -> list[Path]:
    from tasker.services.workflows.template_search import installed_templates

    if paths := installed_templates():
        return paths
    raise UsageError("expected PATHS", hint="give a template file or a folder; no installed package provides templates")


def _registered_text(done: dict[str, list[dict[str, str]]]) -> str:
    return "\n".join("registered {namespace}/{name}:{version}".format(**entry) for entry in done["registered"])


async def _store(app: App, *, workflows: Sequence[Workflow], force: bool) -> None:
    from tasker.services.workflows.registration import register_workflow

    for workflow in workflows:
        await register_workflow(app.plans, workflow, force=force)


async def _send(app: Fleet, *, paths: Sequence[Path], environment: str | None, force: bool) -> None:
    """Send all templates as one text, so that all of them are registered or none."""
    from tasker.services.workflows.files import find_templates

    texts = [file.read_text(encoding="utf-8") for path in paths for file in find_templates(path)]
    whole = "".join(
        text if text.startswith("---") else f"---\n{text}" for text in (f"{content}\n" for content in texts)
    )
    await app.template_texts.register(whole, environment, force=force)


def _text(rows: Sequence[Any]) -> str:
    if not rows:
        return "no templates"
    lines = [
        (
            f"{row['namespace']}/{row['name']}:{row['version']}",
            str(row["steps"]),
            date_time(row["updated_at"]),
            one_line(row["description"] or "", 60),
        )
        for row in rows
    ]
    return table(("template", "steps", "registered", "description"), lines)


PATH = WorkflowPath()


def _environment_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--env", "environment", metavar="NAME", help="Apply the overrides of this environment.")(
        command
    )


_handlers_option = click.option(
    "--handlers",
    metavar="MODULE_OR_FOLDER",
    multiple=True,
    help="More handlers, beside those in the handlers.py of the template's folder; repeatable.",
)


@click.group(cls=GuessingGroup)
def template() -> None:
    """Validate, draw, describe and register templates."""


template.add_command(list_templates)
template.add_command(register)
template.add_command(diff)


@template.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@_environment_option
@_handlers_option
@click.option(
    "--strict",
    is_flag=True,
    help="Also warn about values without a schema, and about schema properties that nothing reads.",
)
@format_option("text", "json", "sarif")
def validate(
    paths: tuple[Path, ...], environment: str | None, handlers: tuple[str, ...], strict: bool, form: str
) -> None:
    """Report every problem of the templates in files and folders, and of the handlers beside them.

    Where a handlers.py lies beside a template, or --handlers names some, every step needs a handler that fits it.
    Silent, and exit code 0, when there is none. Warnings are shown and leave the exit code at 0; with an error it is 1.
    """
    diagnostics, sources = _diagnosed(paths, environment, handlers, strict=strict)
    _print(diagnostics, sources, form)
    if any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics):
        raise click.exceptions.Exit(1)


def _diagnosed(
    paths: Sequence[Path],
    environment: str | None,
    handlers: Sequence[str],
    *,
    strict: bool,
    contracts: ContractCount | None = None,
) -> tuple[list[Diagnostic], Mapping[str, str]]:
    rules, steps = plugged_rules(), plugged_handlers()
    results = [load_path(path, environment, rules, strict) for path in paths]
    if all(result.ok for result in results):
        require_environment(combined(results), environment)
    diagnostics: list[Diagnostic] = []
    with reserved_stdout():  # modules of handlers may print
        for path, result in zip(paths, results, strict=True):
            diagnostics += [*result.diagnostics, *check_handlers(result, path, handlers, steps, contracts)]
    return list(dict.fromkeys(diagnostics)), combined(results).sources


@template.command("check-contracts")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@_environment_option
@_handlers_option
@format_option("text", "json", "sarif")
def check_contracts(paths: tuple[Path, ...], environment: str | None, handlers: tuple[str, ...], form: str) -> None:
    """Compare what handlers read with the schemas of the results and inputs that they read it from.

    Like `validate`, which reports the same problems, it then says how many contracts it compared and which of them
    the schemas do not decide. Exit code 0 without an error, whatever could not be decided.

    \b
    Examples:
      tasker template check-contracts workflows
      tasker template check-contracts orders/workflow.yaml --handlers shared_handlers
    """
    count = ContractCount()
    diagnostics, sources = _diagnosed(paths, environment, handlers, strict=False, contracts=count)
    if form == "json":
        found = [diagnostic.to_dict() for diagnostic in diagnostics]
        print_as(form, {"compared": count.compared, "undecided": count.undecided, "diagnostics": found}, str)
    else:
        _print(diagnostics, sources, form)
    if form == "text":
        counted = f"{_count(count.compared, 'contract')} compared, {len(count.undecided)} cannot be decided"
        click.echo("\n".join([counted, *(f"  {text}" for text in count.undecided)]))
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
    print_as(
        form,
        [_with_graph(plan) for plan in plans],
        lambda _: "\n\n".join(FORMATS[form](template_plan) for template_plan in plans),
    )


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
