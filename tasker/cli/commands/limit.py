"""`tasker limit`: limits of what runs at the same time, and of how much begins in a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.render.values import table
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.template.times import rate_text

if TYPE_CHECKING:
    from tasker.services.fleet.limits import LimitUse


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


def _most(use: LimitUse) -> str:
    if use.rate is not None:
        return rate_text(use.rate)
    return "-" if use.most is None else str(use.most)


def _text(found: Sequence[LimitUse]) -> str:
    if not found:
        return "no limits"
    rows: list[tuple[str, str, str, str]] = []
    for use in found:
        rows.append((use.name, _most(use), str(use.running), str(use.waiting)))
        rows += [(f"  {key.value}", "", str(key.running), str(key.waiting)) for key in use.keys or () if key.value]
        if use.more_keys:
            rows.append(("  ...", "", "", ""))
    return table(("LIMIT", "MOST", "RUNNING", "WAITING"), rows)
