from __future__ import annotations

from typing import Any

import httpx
import pytest

from tasker.engine.expansion.choices import parse_decision
from tasker.errors import ValidationError
from tasker.step_handler import ApiResponse, DecisionHandler
from tasker.types import DecisionPointOutcome, StepContext, StepHandlerResult

KEY = "decision_point_outcome"


class Router(DecisionHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        return self.decision_success([])


router = Router()


@pytest.mark.parametrize(
    "result",
    [
        router.decision_success(["a", "b"]),
        router.decision_success("a"),
        router.decision_success_with_outcome(DecisionPointOutcome.create_steps(["a"])),
        router.decision_with_custom_outcome({"type": "create_steps", "step_names": ["a"]}),
        router.route_to_steps(["a", "b"], {"why": "x"}),
        router.decision_no_branches(),
        router.decision_no_branches(DecisionPointOutcome.no_branches("small")),
        router.skip_branches("small", {"limit": 5}),
        router.decision_success([]),
    ],
)
def test_what_a_helper_writes_the_engine_reads(result: StepHandlerResult) -> None:
    assert result.result is not None
    outcome = DecisionPointOutcome.from_step_result(result.result)
    assert outcome is not None
    assert list(parse_decision(result.result).step_names) == outcome.next_step_names


def test_the_wire_form_holds_type_and_names_alone() -> None:
    created = DecisionPointOutcome.create_steps(["a", "b", "a"], routing_context={"x": 1})
    assert created.to_dict() == created.to_value() == {"type": "create_steps", "step_names": ["a", "b"]}
    assert DecisionPointOutcome.no_branches("none").to_dict() == {"type": "no_branches"}


def test_routing_context_is_read_at_the_top_of_the_result() -> None:
    result = router.decision_success("a", {"route_type": "manager"}, {"took": 1}, result_data={"amount": 5})
    assert result.result == {
        "route_type": "manager",
        "amount": 5,
        "routing_context": {"route_type": "manager", "amount": 5},
        KEY: {"type": "create_steps", "step_names": ["a"]},
    }
    assert result.metadata == {"took": 1}


def test_routing_context_never_replaces_the_outcome() -> None:
    result = router.decision_success("a", {KEY: "mine"})
    assert result.result is not None
    assert result.result[KEY] == {"type": "create_steps", "step_names": ["a"]}


def test_an_api_response_serves_as_routing_context() -> None:
    response = ApiResponse(httpx.Response(200, json={"tier": "gold"}, request=httpx.Request("GET", "http://x/")))
    result = router.decision_success("a", response)  # type: ignore[arg-type]
    assert result.result is not None
    assert result.result["body"] == {"tier": "gold"}


def test_a_skipped_branch_says_why() -> None:
    assert router.skip_branches("too small").result == {"reason": "too small", KEY: {"type": "no_branches"}}


def test_a_failed_decision_is_not_tried_again() -> None:
    failed = router.decision_failure("no rule fits")
    assert (failed.error_type, failed.retryable) == ("decision_error", False)


@pytest.mark.parametrize("form", ["wire", "published"])
def test_both_forms_are_read(form: str) -> None:
    outcome = DecisionPointOutcome.create_steps(["a"])
    value = outcome.to_dict() if form == "wire" else outcome.model_dump(mode="json")
    assert DecisionPointOutcome.parse(value) == outcome


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("create_steps", "must be a mapping, found str"),
        ({"type": "ActivateSteps"}, "unknown decision outcome type 'ActivateSteps'"),
        ({"step_names": ["a"]}, "unknown decision outcome type None"),
        ({"type": "create_steps", "step_names": "a"}, "step_names must be a list"),
        ({"type": "create_steps", "step_names": [1]}, "step_names must be a list"),
        ({"type": "create_steps", "step_names": []}, "names no step"),
        ({"type": "create_steps", "step_names": ["a"], "dynamic_steps": [{}]}, "dynamic_steps is not supported"),
    ],
)
def test_a_malformed_outcome_is_refused_with_the_reason(value: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        router.validate_decision_outcome(value)


def test_dynamic_steps_are_refused_with_the_reason() -> None:
    with pytest.raises(ValidationError) as caught:
        DecisionPointOutcome.create_steps(["a"], dynamic_steps=[{"name": "new"}])
    assert caught.value.hint == "declare the steps in the template and name them in step_names"


def test_a_result_without_the_key_holds_no_outcome() -> None:
    assert DecisionPointOutcome.from_step_result({"a": 1}) is None
    assert DecisionPointOutcome.from_step_result(None) is None


def test_a_decision_handler_says_what_it_can() -> None:
    assert {"process", "decision_point"} <= set(router.capabilities)
