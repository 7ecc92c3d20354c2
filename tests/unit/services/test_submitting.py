"""What a program submits is checked before anything is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

import tasker
from tasker.errors import NotStorable, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.by_message import TaskRequestMessage
from tasker.services.submission.submit import DraftFactory, Submission
from tasker.services.workflows.target_plans import TargetPlans
from tests.unit.handlers.support import TASK, plan_of, step_plan

OUT_OF_RANGE = [2**31, -(2**31) - 1, "urgent", "10", 1.5, True]


@pytest.mark.parametrize("priority", OUT_OF_RANGE)
def test_a_priority_that_cannot_be_kept_is_refused(priority: Any) -> None:
    with pytest.raises(UsageError, match="or a whole number from -2147483648 to 2147483647"):
        DraftFactory(lambda: TASK).draft(plan_of(step_plan()), Submission({}, priority=priority))


@pytest.mark.parametrize("priority", OUT_OF_RANGE)
def test_a_request_by_message_with_such_a_priority_is_refused(priority: Any) -> None:
    message = {"request_id": TASK, "namespace": "a", "template": "b", "options": {"priority": priority}}
    with pytest.raises(UsageError, match="priority: expected critical"):
        TaskRequestMessage.decode(json.dumps(message).encode())


WRONG_KIND = [
    {"correlation_id": "order-17"},
    {"parent_correlation_id": 17},
    {"idempotency_key": 5},
    {"tags": "abc"},
    {"tags": None},
    {"tags": {"a": 1}},
    {"tags": ["a", None]},
    {"tags": ["a", 10**400]},
    {"initiator": float("nan")},
    {"source_system": b"shop"},
    {"reason": ["a"]},
]
UNSTORABLE = [
    ({"reason": "a\0"}, "reason", "NUL"),
    ({"source_system": "\ud800"}, "source_system", "surrogate"),
    ({"tags": ["fine", "\udfff"]}, "tags[1]", "surrogate"),
    ({"tags": ["\0"]}, "tags[0]", "NUL"),
    ({"initiator": "x" * 2_601}, "initiator", "2,601 bytes are more than the 2,600 allowed"),
    ({"initiator": "\u20ac" * 867}, "initiator", "2,601 bytes"),
    ({"tags": ["x" * 3_000_000]}, "tags[0]", "3,000,000 bytes"),
    ({"reason": "x" * 101}, "reason", "101 bytes"),
]


@pytest.mark.parametrize("option", WRONG_KIND, ids=repr)
def test_an_option_of_another_kind_is_the_mistake_of_who_gave_it(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected a ") as caught:
        DraftFactory(lambda: TASK).draft(plan_of(step_plan()), Submission({}, **option))
    assert caught.value.message.startswith(next(iter(option)))
    assert caught.value.hint


@pytest.mark.parametrize(("option", "path", "reason"), UNSTORABLE, ids=lambda value: repr(value)[:40])
def test_an_option_that_no_column_takes_is_refused_with_its_place(
    option: dict[str, Any], path: str, reason: str
) -> None:
    with pytest.raises(NotStorable) as caught:
        DraftFactory(lambda: TASK, context_limit_bytes=100).draft(plan_of(step_plan()), Submission({}, **option))
    assert caught.value.path == path
    assert reason in caught.value.reason
    assert caught.value.hint


def test_options_are_written_down_as_their_columns_hold_them() -> None:
    correlation = "0199C1F4-8A52-7000-8000-00000000C0DE"
    options: dict[str, Any] = {
        "parent_correlation_id": UUID(correlation),
        "tags": ("b", "\u20ac"),
        "reason": "x" * 5_000,
    }
    request = Submission({}, correlation_id=correlation, initiator="x" * 2_600, **options)
    item = DraftFactory(lambda: TASK).draft(plan_of(step_plan()), request).item
    assert (item["correlation"], item["parent_correlation"]) == (correlation.lower(),) * 2
    assert (item["initiator"], item["reason"], item["tags"]) == ("x" * 2_600, "x" * 5_000, ["b", "\u20ac"])


@pytest.mark.parametrize(
    ("given", "priority"),
    [("critical", 100), ("high", 10), ("normal", 0), ("low", -10), ("bulk", -100), (7, 7), (None, -10)],
)
def test_a_priority_has_a_name_a_number_or_that_of_its_template(given: Any, priority: int) -> None:
    plan = replace(plan_of(step_plan()), priority=-10)

    assert DraftFactory(lambda: TASK).draft(plan, Submission({}, priority=given)).item["priority"] == priority


def test_a_misspelled_priority_is_answered_with_the_likely_one() -> None:
    with pytest.raises(UsageError) as error:
        DraftFactory(lambda: TASK).draft(plan_of(step_plan()), Submission({}, priority="hihg"))  # type: ignore[arg-type]

    assert error.value.hint == "did you mean `high`?"


def test_the_greatest_and_the_least_priority_are_taken() -> None:
    for priority in (2**31 - 1, -(2**31)):
        DraftFactory(lambda: TASK).draft(plan_of(step_plan()), Submission({}, priority=priority))


@pytest.mark.parametrize("made", [tasker.App, tasker.SyncApp])
def test_an_empty_database_url_is_no_embedded_server(made: Any) -> None:
    with pytest.raises(UsageError, match="database_url is empty"):
        made("")


async def test_an_environment_that_is_named_and_nobody_has_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    overrides = "environments: {prod: {steps: [{name: a, timeout_seconds: 5}]}}"
    file.write_text(f"name: a\nnamespace: b\nversion: 1\nsteps: [{{name: a, handler: h}}]\n{overrides}\n")
    targets = TargetPlans(HandlerRegistry(), cast(Any, None))

    assert (await targets.find(file, None, "prod", None)).steps[0].timeout_seconds == 5
    assert (await targets.find(file, None, None, "of_the_fleet")).steps[0].timeout_seconds is None
    with pytest.raises(UsageError) as caught:
        await targets.find(file, None, "prdo", None)
    assert caught.value.hint == "did you mean `prod`?"
    with pytest.raises(UsageError, match="the template is already compiled"):
        await targets.find(plan_of(step_plan()), None, "prod", None)
