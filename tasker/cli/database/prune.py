"""`tasker db prune`: deletion of old finished tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import click

from tasker.cli.connection import FORMAT, configured_for, connected, print_as
from tasker.cli.options import DatabaseOption, NumberRange, database_options
from tasker.cli.place.naming import require_known_filter
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.contracts.retention import RetentionRule
    from tasker.services.database.retention import Pruned

_DAYS = NumberRange(0, 36_500)
_COUNT = click.IntRange(1)


@click.command()
@click.option("--completed-days", type=_DAYS, help="Delete completed tasks older than this.")
@click.option("--failed-days", type=_DAYS, help="Delete failed and cancelled tasks older than this.")
@click.option(
    "--completed-count",
    type=_COUNT,
    help="Number of completed tasks to keep per template.",
)
@click.option("--failed-count", type=_COUNT, help="Number of failed or cancelled tasks to keep per template.")
@click.option(
    "--pending-days", type=_DAYS, help="Keep tasks with a pending dead letter for this many days; default: forever."
)
@click.option("--namespace", help="Only tasks of this namespace.")
@click.option("--template", help="Only tasks of this template, every version.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted; delete nothing.")
@FORMAT
@database_options
def prune(database: DatabaseOption, form: str, dry_run: bool, **limits: float | str | None) -> None:
    """Delete finished tasks with their data: steps, results, history, closed dead letters.

    Tasks that ended within the last hour are kept, and so are tasks with a pending dead letter (see --pending-days) or
    in a replay. Templates are kept.

    Without any limit, --namespace or --template those of [common.retention] apply. Tasks are deleted in small
    transactions: after an interruption, run the command again.
    """
    rules, named = _rules(database, limits), cast("dict[str, str | None]", limits).get

    async def act(app: App) -> Sequence[Pruned]:
        found = await (app.retention.prunable(rules) if dry_run else app.retention.prune(rules))
        return await require_known_filter(app, found, named("namespace"), named("template"))

    print_as(form, connected(database, act, operates=not dry_run), lambda found: _text(found, dry_run))


def _rules(database: DatabaseOption, limits: Mapping[str, float | str | None]) -> Sequence[RetentionRule]:
    """Return the rule of the options, or the configured rules if no option is set."""
    from tasker.contracts.retention import RetentionRule

    rule = RetentionRule(**limits)  # type: ignore[arg-type]  # the options are named as its fields
    rules = [rule] if rule != RetentionRule() else configured_for(database).sweeps.retention.rules
    if not any(each.limits for each in rules):
        hint = "give --completed-days, --failed-days or a count, or configure [common.retention]"
        raise UsageError("no limit is given or configured", hint=hint)
    return rules


def _text(found: Sequence[Pruned], dry_run: bool) -> str:
    from tasker.cli.render.table import table

    if not found:
        return "Nothing to delete. (Tasks that ended within the last hour are always kept.)"
    rows = [
        (
            f"{each.namespace}/{each.template} {each.version}",
            "failed" if each.failed else "complete",
            each.before[:19],
            *(f"{number:,}" for number in (each.tasks, each.steps, each.kept)),
        )
        for each in found
    ]
    total = f"{sum(each.tasks for each in found):,} tasks {'would be' if dry_run else 'were'} deleted"
    return "\n".join((table(("template", "ended", "before", "tasks", "steps", "kept"), rows), "", total))
