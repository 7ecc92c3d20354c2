"""What `tasker task steps` says of a step."""

from __future__ import annotations

import pytest

from tasker.cli.commands.task_steps import _steps_text
from tasker.views.model import from_row
from tasker.views.steps import Step


@pytest.mark.parametrize(
    ("state", "warned"), [("waiting_for_retry", True), ("complete", False), ("in_progress", False), ("error", False)]
)
def test_only_a_step_that_waits_to_be_tried_again_is_said_to_be_retried(state: str, warned: bool) -> None:
    step = from_row(
        Step,
        {
            "name": "charge",
            "step_uuid": "0195c8f0-1d2e-7000-8000-000000000001",
            "state": state,
            "dependencies_satisfied": True,
            "ready_for_execution": False,
            "retry_eligible": True,
            "attempts": 1,
            "max_attempts": 3,
        },
    )

    assert ("Retry eligible" in _steps_text([step])) is warned
