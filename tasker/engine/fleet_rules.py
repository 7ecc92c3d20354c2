"""Settings on which every process that moves tasks must agree, as arguments of the engine's functions."""

from __future__ import annotations

from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.exchange import CLAIM_BYTES
from tasker.engine.expansion.choices import DEFAULT_LIMITS, ExpansionLimits
from tasker.settings.execution import DeadLetterSettings, Execution, Lease
from tasker.settings.queues import HandlerDispatch, QueueSettings


@dataclass(frozen=True, slots=True)
class FleetRules:
    """Settings on which every process that moves tasks must agree."""

    execution: Execution = Execution.for_single_process()
    limits: ExpansionLimits = DEFAULT_LIMITS
    """Limits of the steps that decisions and batches may create."""
    hidden_seconds: float = float(QueueSettings.default_visibility_timeout_seconds)
    """Seconds for which a received message stays hidden while it is processed (backends with acknowledgements)."""
    dead_letters: DeadLetterSettings = DeadLetterSettings.for_single_process()


DEFAULT_RULES = FleetRules()


def shared_arguments(rules: FleetRules) -> dict[str, Any]:
    """Return the arguments that every function needs that moves steps; a worker overrides them with its own."""
    return {
        "window": rules.execution.enqueue_window,
        "timeout_ms": HandlerDispatch.handler_timeout_ms,
        "grace_ms": Lease.grace_ms,
        "max_claim_bytes": CLAIM_BYTES,
    }


def non_default_rules(rules: FleetRules) -> dict[str, Any]:
    """Return the rules that differ from the defaults of the SQL functions."""
    used, defaults = _sql_rules(rules), _sql_rules(DEFAULT_RULES)
    return {name: value for name, value in used.items() if value != defaults[name]}


def _sql_rules(rules: FleetRules) -> dict[str, Any]:
    return {"on_blocked": rules.execution.on_blocked, "dead_letters": rules.dead_letters.enabled}
