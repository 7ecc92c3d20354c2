"""What a program submits is checked before anything is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

import tasker
from tasker.errors import UsageError
from tasker.handler import HandlerRegistry
from tasker.services.authoring.target_plans import TargetPlans
from tasker.services.submitting.submission import Drafts, Request
from tasker.services.submitting.task_requests import TaskRequest
from tests.unit.handlers.support import TASK, plan_of, step_plan

OUT_OF_RANGE = [2**31, -(2**31) - 1, "high", 1.5, True, None]


@pytest.mark.parametrize("priority", OUT_OF_RANGE)
def test_a_priority_that_cannot_be_kept_is_refused(priority: Any) -> None:
    with pytest.raises(UsageError, match="priority: expected a whole number from -2147483648 to 2147483647"):
        Drafts(lambda: TASK).draft(plan_of(step_plan()), Request({}, priority=priority))


@pytest.mark.parametrize("priority", [priority for priority in OUT_OF_RANGE if priority is not None])
def test_a_request_by_message_with_such_a_priority_is_refused(priority: Any) -> None:
    message = {"request_id": TASK, "namespace": "a", "template": "b", "options": {"priority": priority}}
    with pytest.raises(UsageError, match="priority: expected a whole number"):
        TaskRequest.decode(json.dumps(message).encode())


def test_the_greatest_and_the_least_priority_are_taken() -> None:
    for priority in (2**31 - 1, -(2**31)):
        Drafts(lambda: TASK).draft(plan_of(step_plan()), Request({}, priority=priority))


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
    with pytest.raises(UsageError, match="the template is compiled already"):
        await targets.find(plan_of(step_plan()), None, "prod", None)
