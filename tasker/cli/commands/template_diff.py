"""`tasker template diff`: what a new version of a template breaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tasker.cli.commands.plugin import plugged_rules
from tasker.cli.connection import FORMAT, print_as
from tasker.cli.render.changes import comparisons_data, comparisons_text
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.errors import UsageError
from tasker.services.workflows.files import load_versions
from tasker.services.workflows.targets import is_there, registered_name, unknown_target
from tasker.template.diff import Comparison, Level, Version, compare_all
from tasker.template.plan import Plan

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet

EXITS = {Level.BREAKING: 1, Level.WARNING: 3}


@click.command()
@click.argument("targets", metavar="[BEFORE] AFTER", nargs=-1, required=True, type=str)
@click.option("--registered", is_flag=True, help="Compare the templates of AFTER with those that are registered.")
@click.option("--env", "environment", metavar="NAME", help="Apply the overrides of this environment to files.")
@FORMAT
@fleet_options
def diff(targets: tuple[str, ...], registered: bool, environment: str | None, form: str, place: FleetTarget) -> None:
    """Report what the change from one version of a template to another breaks, and for whom.

    BEFORE and AFTER are files, folders, or registered templates (NAMESPACE/NAME[:VERSION]). Exit code 0: nothing
    breaks; 1: something does; 3: there are warnings only.

    \b
    Examples:
      tasker template diff old/workflow.yaml new/workflow.yaml
      tasker template diff shop/checkout:1.0.0 workflows/checkout
      tasker template diff --registered workflows/checkout
    """
    names = list(targets)
    if len(names) != (1 if registered else 2):
        expected = "one target with --registered" if registered else "two targets, or one with --registered"
        raise UsageError(f"expected {expected}, got {len(names)}", hint="tasker template diff BEFORE AFTER")
    comparisons = _compared(names, registered, environment, place)
    if form == "json":
        print_as(form, comparisons_data(comparisons), str)
    else:
        click.echo(comparisons_text(comparisons))
    levels = {comparison.level for comparison in comparisons}
    if level := next((level for level in EXITS if level in levels), None):
        raise click.exceptions.Exit(EXITS[level])


def _compared(
    names: Sequence[str], registered: bool, environment: str | None, place: FleetTarget
) -> tuple[Comparison, ...]:
    rules = plugged_rules()
    files = {name: load_versions(name, environment, rules) for name in names if is_there(name)}
    if registered and names[0] not in files:
        raise UsageError(f"{names[0]} does not exist", hint="with --registered, AFTER is a file or a folder")

    async def read(fleet: Fleet) -> tuple[Comparison, ...]:
        if registered:
            after = files[names[0]]
            known = [await _registered(fleet, v.plan.namespace, v.plan.name, v.plan.version) for v in after]
            return compare_all([version for version in known if version is not None], after)
        before, after = [files.get(name) or [await _named(fleet, name)] for name in names]
        return compare_all(before, after)

    if not registered and all(name in files for name in names):
        return compare_all(files[names[0]], files[names[1]])
    for name in names:
        if name not in files:
            registered_name(name)  # a missing file is reported before a connection is opened
    return run_on_fleet(place, read)


async def _named(fleet: Fleet, target: str) -> Version:
    with unknown_target(target):
        name = registered_name(target)
        found = await _registered(fleet, *name[:2], name.version, exactly=name.version is not None)
        if found is None:
            from tasker.engine.plans import not_registered

            raise not_registered(*name)
        return found


async def _registered(
    fleet: Fleet, namespace: str, name: str, version: str | None, *, exactly: bool = False
) -> Version | None:
    """Return the registered version; unless `exactly`, the most recently registered one if that does not exist."""
    from tasker.engine.plans import TemplateFilter

    rows = await fleet.plans.registered(TemplateFilter(namespace, name))
    same = [row for row in rows if row["version"] == version]
    chosen = same or ([] if exactly else sorted(rows, key=lambda row: str(row["updated_at"]))[-1:])
    if not chosen:
        return None
    detail = await fleet.template_texts.detail(namespace, name, chosen[0]["version"])
    return Version(Plan.from_dict(detail.configuration))
