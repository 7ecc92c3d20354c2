"""`tasker template list` and `register`: the templates registered in a database."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, connected, print_as
from tasker.cli.guessing import WorkflowPath
from tasker.cli.place.naming import require_known_filter
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import DatabaseTarget, FleetTarget
from tasker.cli.plugin import plugged_rules
from tasker.cli.render.table import table
from tasker.cli.render.values import date_time, one_line
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.cli.place.fleet import Fleet
    from tasker.contracts.plan import Plan


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
    from tasker.services.engine.plans import TemplateFilter

    async def read(app: Fleet) -> Sequence[Any]:
        found = await app.plans.registered(TemplateFilter(namespace, name), limit=limit + 1)
        return await require_known_filter(app, found, namespace, name)

    found = run_on_fleet(place, read)
    print_as(form, found[:limit], _text)
    if len(found) > limit:
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
    from tasker.services.authoring.templates import load_plans

    sources = paths or _installed()
    rules = plugged_rules()
    plans = [plan for path in sources for plan in load_plans(path, environment, rules, named=True)]
    if isinstance(place, DatabaseTarget):
        connected(place.database, partial(_store, plans=plans, force=force), create=True, operates=True, several=True)
    else:
        run_on_fleet(place, partial(_send, paths=sources, environment=environment, force=force))
    done = [{"namespace": plan.namespace, "name": plan.name, "version": plan.version} for plan in plans]
    print_as(form, {"registered": done}, _registered_text)


def _installed() -> list[Path]:
    from tasker.services.authoring.template_search import installed_templates

    if found := installed_templates():
        return found
    raise UsageError("expected PATHS", hint="give a template file or a folder; no installed package provides templates")


def _registered_text(done: dict[str, list[dict[str, str]]]) -> str:
    return "\n".join("registered {namespace}/{name}:{version}".format(**each) for each in done["registered"])


async def _store(app: App, *, plans: Sequence[Plan], force: bool) -> None:
    for plan in plans:
        await app.plans.register(plan, force=force)


async def _send(app: Fleet, *, paths: Sequence[Path], environment: str | None, force: bool) -> None:
    """Send all templates as one text, so that all of them are registered or none."""
    from tasker.services.authoring.templates import find_templates

    texts = [file.read_text(encoding="utf-8") for path in paths for file in find_templates(path)]
    whole = "".join(text if text.startswith("---") else f"---\n{text}" for text in (f"{each}\n" for each in texts))
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
