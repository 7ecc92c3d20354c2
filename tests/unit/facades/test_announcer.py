"""What a worker does reaches the event bridge: in order, off the worker's loop, and never in its way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tasker.bootstrap import announcer
from tasker.bootstrap.announcer import StepAnnouncer
from tasker.errors import PermanentError
from tasker.event_bridge import AnnouncedStep, EventBridge, EventNames
from tasker.execution.attempt.observed import ObservedRunner
from tasker.handler import HandlerRegistry
from tasker.step_execution_subscriber import StepExecutionSubscriber
from tasker.step_handler import checkpoint_yield, step_handler
from tests.unit.execution.bench import Bench, SetClock

EVENTS = (
    EventNames.STEP_EXECUTION_RECEIVED,
    EventNames.STEP_CHECKPOINT_YIELD,
    EventNames.HANDLER_ERROR,
    EventNames.STEP_COMPLETION_SENT,
)
