"""Arguments of hooks: plain values that can be sent to another process."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict
from datetime import UTC, datetime

from tasker.plugins import hooks as hookspecs
from tasker.plugins.hook_arguments import (
    AttemptEnded,
    AttemptStarted,
    BatchDelivered,
    BreakerChanged,
    ClaimsThrottled,
    EventPublished,
    ProcessInfo,
    QueuePolled,
    RequestAnswered,
    StateTransition,
    StoredAttempt,
    SweepRepaired,
    TaskClosed,
    TaskFinished,
    TasksSubmitted,
    TaskSubmitted,
    WriteCommitted,
)


def test_whatever_plugins_are_told_can_be_kept_as_plain_data() -> None:
    started = AttemptStarted("task", "step", "shop", "order", "pay", "pay", 1, 3, 7, "worker", "")
    values = [
        started,
        AttemptEnded(started, "succeeded", 12),
        TaskFinished("task", "complete"),
        StateTransition("task", "step", "error", "worker", 7, "timeout", "no answer"),
        BreakerChanged("messaging", "closed", "open", ""),
        BatchDelivered(3),
        ClaimsThrottled("fenced", None),
        TaskClosed("task", "cancelled", "shop", "order", "correlation", datetime.now(UTC)),
        SweepRepaired((("hint_lost", 2),)),
        ProcessInfo("worker", "uuid", ("shop",)),
        EventPublished("order.paid", "shop", "durable", False, 0.5),
        RequestAnswered("GET", "/v1/tasks", 200, None, 2.5),
        StoredAttempt("shop", None, 5, True),
        TaskSubmitted("task", "correlation"),
        TasksSubmitted("shop", "order", 1, 2.5, (TaskSubmitted("task", "correlation"),)),
        WriteCommitted(
            "advance", 2.5, (("shop", 1),), 1, (("success", 1),), 1, (("complete", 1),), (("complete", 4.5),)
        ),
        QueuePolled(2, True, False, 2.5),
    ]
    assert {type(value).__name__ for value in values} == {*hookspecs.__all__} - {
        "ASKED",
        "AttemptTrace",
        "RuleFinding",
        "Hooks",
        "hookimpl",
    }
    for value in values:
        assert pickle.loads(pickle.dumps(value)) == value
        assert json.dumps(asdict(value), default=datetime.isoformat)
        assert hash(value) is not None
