"""Rules on which every process that moves tasks must agree."""

from __future__ import annotations

from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import CLAIM_BYTES, ENQUEUE_WINDOW, ON_BLOCKED, STEP_GRACE_MS, STEP_TIMEOUT_MS
from tasker.contracts.defaults.pressure import VISIBILITY_TIMEOUT_SECONDS
from tasker.lifecycle.choices import DEFAULT_LIMITS, ExpansionLimits


@dataclass(frozen=True, slots=True)
class FleetRules:
    """Settings on which every process that moves tasks must agree."""

    on_blocked: str = ON_BLOCKED
    """`give_up` or `wait`: fate of a task when failed steps block all remaining ones (rule 10)."""
    window: int = ENQUEUE_WINDOW
    """Enqueued steps per namespace above which further ready steps stay in the backlog."""
    limits: ExpansionLimits = DEFAULT_LIMITS
    """Limits of the steps that decisions and batches may create."""
    hidden_seconds: float = float(VISIBILITY_TIMEOUT_SECONDS)
    """Seconds for which a received message stays hidden while it is processed (backends with acknowledgements)."""
    dead_letters: bool = True
    """Record failed tasks as dead letters for inspection."""
    log_expansions: bool = False
    """Log the steps that every decision and batchable step creates."""


DEFAULT_RULES = FleetRules()


def shared_arguments(rules: FleetRules) -> dict[str, Any]:
    """Return the arguments that every function needs that moves steps; a worker overrides them with its own."""
    return {
        "window": rules.window,
        "timeout_ms": STEP_TIMEOUT_MS,
        "grace_ms": STEP_GRACE_MS,
        "max_claim_bytes": CLAIM_BYTES,
    }


def non_default_rules(rules: FleetRules) -> dict[str, Any]:
    """Return the rules that differ from the defaults of the SQL functions."""
    told: dict[str, Any] = {"on_blocked": rules.on_blocked, "dead_letters": rules.dead_letters}
    return {name: value for name, value in told.items() if value != getattr(DEFAULT_RULES, name)}
