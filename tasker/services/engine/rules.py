"""What every process that moves tasks must agree on."""

from __future__ import annotations

from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import ON_BLOCKED
from tasker.contracts.defaults.pressure import VISIBILITY_TIMEOUT_SECONDS
from tasker.lifecycle.choices import DEFAULT_LIMITS, ExpansionLimits


@dataclass(frozen=True, slots=True)
class FleetRules:
    """What every process that moves tasks must agree on."""

    on_blocked: str = ON_BLOCKED
    """`give_up` or `wait`: what becomes of a task when failed steps block all that is left (rule 10)."""
    limits: ExpansionLimits = DEFAULT_LIMITS
    """How far decisions and batches may go."""
    hidden_seconds: float = float(VISIBILITY_TIMEOUT_SECONDS)
    """How long a received message stays hidden while it is dealt with (backends with acknowledgements)."""
    dead_letters: bool = True
    """Tasks that fail are recorded for a person."""
    log_expansions: bool = False
    """Log what every decision and batchable step creates."""


DEFAULT_RULES = FleetRules()


def non_default_rules(rules: FleetRules) -> dict[str, Any]:
    """What the SQL functions must know of these beyond their defaults."""
    told: dict[str, Any] = {"on_blocked": rules.on_blocked, "dead_letters": rules.dead_letters}
    return {name: value for name, value in told.items() if value != getattr(DEFAULT_RULES, name)}
