"""`tasker limit`: limits of what runs at the same time, and of how much begins in a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.render.values import date_time, names_text, table
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.errors import UsageError
from tasker.template.rates import rate_text

if TYPE_CHECKING:
    from tasker.views.fleet import LimitUse


@click.group(cls=GuessingGroup)
def limit() -> None:
    """Show limits of steps and what waits."""


@limit.command("list")
@click.argument("name", required=False)
@click.option(
    "--keys",
    type=click.IntRange(0, 1000),
    default=0,
    help="Number of keys of each limit; their values are parts of inputs and results.",
)
@FORMAT
@fleet_options
def list_limits(name: str | None, keys: int, form: str, place: FleetTarget) -> None:
    """List limits with what runs and waits; with NAME one of them.

    With --keys, the keys for which steps wait are below each limit, then others.

    \b
    Examples:
      tasker limit list
      tasker limit list "step shop/order/charge" --keys 20
    """
    limits = run_on_fleet(place, lambda app: app.limits.list(name, keys=max(keys, 1)))
    print_as(form, [use if keys else use.without_keys() for use in limits], _text)


@limit.command("show")
@click.argument("name")
@click.option(
    "--keys", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of keys; values are data."
)
@FORMAT
@fleet_options
def show_limit(name: str, keys: int, form: str, place: FleetTarget) -> None:
    """Show the limit NAME: its numbers, the templates that use it, and how many steps run and wait.

    \b
    Examples:
      tasker limit show payment_api
    """
    limits = run_on_fleet(place, lambda app: app.limits.list(name, keys=keys))
    if not limits:
        raise UsageError(f"there is no limit {name!r} in use", hint="list them: tasker limit list")
    print_as(form, limits[0], _details)


def _details(use: LimitUse) -> str:
    burst = "" if use.burst is None else f", burst {use.burst:g}"
    rows = {
        "Limit": use.name,
        "Most": f"{_most(use)}{burst}",
        "From": "the configuration" if use.declared_at else "a template",
        "Changed": date_time(use.changed_at),
        "Steps of": names_text(use.templates) if use.templates else "-",
        "Running": str(use.running),
        "Waiting": str(use.waiting),
    }
    head = "\n".join(f"{f'{name}:':<10}{value}" for name, value in rows.items())
    keys = [(key.value, str(key.running), str(key.waiting)) for key in use.keys or () if key.value]
    more = [("...", "", "")] if use.more_keys else []
    return f"{head}\n\n{table(('KEY', 'RUNNING', 'WAITING'), keys + more)}" if keys else head


def _most(use: LimitUse) -> str:
    numbers = ["" if use.most is None else str(use.most), "" if use.rate is None else rate_text(use.rate)]
    return ", ".join(filter(None, numbers)) or "-"


def _text(limits: Sequence[LimitUse]) -> str:
    if not limits:
        return "no limits"
    rows: list[tuple[str, str, str, str]] = []
    for use in limits:
        rows.append((use.name, _most(use), str(use.running), str(use.waiting)))
        rows += [(f"  {key.value}", "", str(key.running), str(key.waiting)) for key in use.keys or () if key.value]
        if use.more_keys:
            rows.append(("  ...", "", "", ""))
    return table(("LIMIT", "MOST", "RUNNING", "WAITING"), rows)
