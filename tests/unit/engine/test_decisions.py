"""Which decisions are read, and what the refused ones are told."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.engine.expansion.choices import NO_BRANCHES, ParsedDecision, parse_decision
from tasker.engine.expansion.outcomes import OutcomeError, OutcomeProblem


def result(outcome: Any) -> dict[str, Any]:
    return {"route_type": "manual", "decision_point_outcome": outcome}


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ({"type": "no_branches"}, NO_BRANCHES),
        ({"type": "no_branches", "reason": "nothing to check"}, NO_BRANCHES),
        ({"type": "create_steps", "step_names": ["a", "b"]}, ParsedDecision(("a", "b"))),
        ({"type": "create_steps", "step_names": ("a",), "routing_context": {"x": 1}}, ParsedDecision(("a",))),
        ({"type": "create_steps", "step_names": ["b", "a", "b"]}, ParsedDecision(("b", "a"))),
        (
            {
                "decision_type": "create_steps",
                "next_step_names": ["a"],
                "dynamic_steps": None,
                "reason": None,
                "routing_context": {},
            },
            ParsedDecision(("a",)),
        ),
        ({"decision_type": "no_branches", "next_step_names": [], "reason": "small"}, NO_BRANCHES),
    ],
)
def test_the_wire_form_and_the_published_form_are_read(outcome: Any, expected: ParsedDecision) -> None:
    assert parse_decision(result(outcome)) == expected


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, "found null"),
        ("manual", "found text 'manual'"),
        ([], "found a list []"),
        ({}, "found an object with no keys"),
        ({"route": "a"}, "found an object with the keys 'route'"),
    ],
)
def test_a_missing_outcome_is_an_error_that_shows_what_was_returned(given: Any, found: str) -> None:
    with pytest.raises(OutcomeError) as error:
        parse_decision(given)
    assert error.value.problem == OutcomeProblem.MISSING
    assert error.value.message == f"the result has no 'decision_point_outcome'; {found}"
    assert not error.value.retryable
    assert error.value.hint is not None
    assert "create_steps" in error.value.hint


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("create_steps", "must be an object, found text 'create_steps'"),
        ({}, "has no 'type'"),
        ({"type": "create_step", "step_names": ["a"]}, "has an unknown type: text 'create_step'"),
        ({"type": 1}, "has an unknown type: int 1"),
        ({"type": "ActivateSteps", "step_names": ["a"]}, "has the type 'ActivateSteps', an older spelling"),
        ({"type": "NoBranches"}, "has the type 'NoBranches', an older spelling"),
        ({"type": "create_steps"}, "needs 'step_names', a list of step names; found null"),
        ({"type": "create_steps", "step_names": "a"}, "needs 'step_names', a list of step names; found text 'a'"),
        ({"type": "create_steps", "step_names": []}, "is create_steps with an empty 'step_names'"),
        ({"type": "create_steps", "step_names": ["a", 1]}, "step_names[1] must be the name of a step, found int 1"),
        ({"type": "create_steps", "step_names": [""]}, "step_names[0] must be the name of a step, found text ''"),
        ({"type": "create_steps", "step_names": ["a"], "stepnames": []}, "has an unknown key 'stepnames'"),
        ({"type": "no_branches", "step_names": ["a"]}, "is no_branches and yet has step_names: a list ['a']"),
        ({"decision_type": "maybe"}, "has an unknown decision_type: text 'maybe'"),
        ({"decision_type": "create_steps", "step_names": ["a"]}, "has an unknown key 'step_names'"),
        (
            {"decision_type": "create_steps", "next_step_names": ["a"], "dynamic_steps": [{"name": "new"}]},
            "holds 'dynamic_steps': a decision chooses among the steps of its template",
        ),
    ],
)
def test_a_malformed_outcome_is_an_error_that_says_what_is_wrong(outcome: Any, message: str) -> None:
    with pytest.raises(OutcomeError) as error:
        parse_decision(result(outcome))
    assert error.value.problem == OutcomeProblem.MALFORMED
    assert error.value.error_code == "malformed_outcome"
    assert f"decision_point_outcome {message}" in error.value.message


def test_a_misspelt_type_or_key_gets_a_suggestion() -> None:
    with pytest.raises(OutcomeError) as error:
        parse_decision(result({"type": "create_step"}))
    assert error.value.hint == "did you mean 'create_steps'?"
    with pytest.raises(OutcomeError) as error:
        parse_decision(result({"type": "create_steps", "step_name": ["a"]}))
    assert error.value.hint == "did you mean 'step_names'?"
