"""Strict parser of the outcome of a decision step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.expansion.outcome_forms import DECISION_KEY, DecisionType, decision_form
from tasker.lifecycle.outcomes import describe, did_you_mean, malformed, outcome_of, refuse_unknown_keys

_EXAMPLE = (
    "self.decision_success(['step_name']), or "
    '{"decision_point_outcome": {"type": "create_steps", "step_names": ["step_name"]}}'
)
_TYPES = tuple(DecisionType)
_EXPECTED = f'expected "{DecisionType.CREATE_STEPS}" or "{DecisionType.NO_BRANCHES}"'
_OLDER = {"ActivateSteps": "create_steps", "CreateSteps": "create_steps", "NoBranches": "no_branches"}


@dataclass(frozen=True, slots=True)
class ParsedDecision:
    """Steps that a decision creates, each once, in its order; empty for `no_branches`."""

    step_names: tuple[str, ...] = ()


NO_BRANCHES = ParsedDecision()


def parse_decision(result: Any) -> ParsedDecision:
    """Parse the decision in a step's result.

    Accepts the wire form (`type`, `step_names`) and the form of the published class (`decision_type`,
    `next_step_names`). Repeated names count once. Raises `OutcomeError` for everything else: no outcome, an unknown
    type or key, an empty `create_steps`, steps that the template does not declare.
    """
    outcome = outcome_of(result, DECISION_KEY, _EXAMPLE)
    type_key, names_key, known = decision_form(outcome)
    _check_type(outcome, type_key)
    _refuse_dynamic_steps(outcome)
    refuse_unknown_keys(DECISION_KEY, outcome, known)
    names = outcome.get(names_key)
    if outcome[type_key] == DecisionType.NO_BRANCHES:
        return _no_branches(names, names_key)
    return ParsedDecision(_names(names, names_key))


def _check_type(outcome: Mapping[str, Any], key: str) -> None:
    kind = outcome.get(key)
    if kind in _TYPES:
        return
    if kind is None:
        raise malformed(DECISION_KEY, f"has no '{key}'", _EXPECTED)
    if isinstance(kind, str) and kind in _OLDER:
        raise malformed(DECISION_KEY, f"has the {key} '{kind}', an older spelling", f"write '{_OLDER[kind]}'")
    hint = did_you_mean(kind, _TYPES) if isinstance(kind, str) else _EXPECTED
    raise malformed(DECISION_KEY, f"has an unknown {key}: {describe(kind)}", hint)


def _refuse_dynamic_steps(outcome: Mapping[str, Any]) -> None:
    if outcome.get("dynamic_steps"):
        raise malformed(
            DECISION_KEY,
            "holds 'dynamic_steps': a decision chooses among the steps of its template, it cannot bring new ones",
            "declare the steps in the template and name them in step_names",
        )


def _no_branches(names: Any, key: str) -> ParsedDecision:
    if names:
        raise malformed(
            DECISION_KEY, f"is no_branches and yet has {key}: {describe(names)}", "create_steps creates them"
        )
    return NO_BRANCHES


def _names(names: Any, key: str) -> tuple[str, ...]:
    if not isinstance(names, (list, tuple)):
        raise malformed(DECISION_KEY, f"needs '{key}', a list of step names; found {describe(names)}")
    if not names:
        raise malformed(DECISION_KEY, f"is create_steps with an empty '{key}'", "no_branches creates none")
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise malformed(DECISION_KEY, f"{key}[{index}] must be the name of a step, found {describe(name)}")
    return tuple(dict.fromkeys(names))
