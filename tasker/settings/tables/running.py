"""`common.backoff`, `common.execution`, `common.log`, `common.sweep`, `common.task_templates`: how tasks run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tasker.contracts.defaults import ENQUEUE_WINDOW, ENVIRONMENT, ON_BLOCKED, SEARCH_PATHS, VALUE_LIMIT_BYTES
from tasker.contracts.defaults.retries import BACKOFF_MULTIPLIER, JITTER_SHARE
from tasker.contracts.defaults.sweeping import (
    FORGET_WORKERS_SECONDS,
    HINT_GRACE_MS,
    IDLE_GRACE_MS,
    PARK_GRACE_MS,
    SWEEP_SLICE,
    UNSERVED_TIMEOUT_SECONDS,
)
from tasker.contracts.settings import Table, choice, flag, number, several, whole
from tasker.settings.tables.formats import Pattern


class Backoff(Table):
    """Retries of a step whose template has no `retry` block; a template or a handler overrides them."""

    default_backoff_seconds: tuple[Annotated[int, Field(ge=1, le=86_400, strict=True)], ...] = several(
        (1, 5, 15, 30, 60),
        "Delays after the first, second ... failed attempt; the last one repeats. Empty: 1 s, multiplied by "
        "backoff_multiplier each time.",
    )
    backoff_multiplier: float = number(
        BACKOFF_MULTIPLIER,
        1,
        10,
        "Growth factor of exponential delays, also for `retry` blocks whose profile does not set one.",
    )
    max_backoff_seconds: int = whole(3600, 1, 3600, "Maximum delay.", advice="60 suits most handlers.")
    jitter_enabled: bool = flag(True, "Randomize delays, so that steps that failed together are not retried together.")
    jitter_max_percentage: float = number(JITTER_SHARE, 0, 1, "Maximum share of the delay that is added or subtracted.")


class Execution(Table):
    """Settings on which all processes that advance tasks must agree."""

    environment: Literal["test", "development", "production"] = choice(
        ENVIRONMENT, "Environment. If set, templates apply their overrides for it.", variable="TASKER_ENV"
    )
    on_blocked: Literal["give_up", "wait"] = choice(
        ON_BLOCKED,
        "Outcome of a task whose remaining steps are all blocked by failed ones: `give_up` ends it in `error`, "
        "`wait` leaves it in `blocked_by_failures` for an operator.",
    )
    enqueue_window: int = whole(
        ENQUEUE_WINDOW,
        1,
        1_000_000,
        "Maximum number of enqueued steps per namespace; further ready steps stay in the backlog, which is "
        "ordered by priority.",
    )
    context_limit_bytes: int = whole(VALUE_LIMIT_BYTES, 1024, 67_108_864, "Maximum size of a task's context as JSON.")
    result_limit_bytes: int = whole(VALUE_LIMIT_BYTES, 1024, 67_108_864, "Maximum size of a step's result as JSON.")


class Log(Table):
    """Log lines that processes write to standard error."""

    format: Literal["text", "json"] = choice(
        "text", "Format of log lines: text or JSON objects.", variable="TASKER_LOG_FORMAT"
    )


class Sweep(Table):
    """Ages at which the sweep repairs lost work. A healthy system never needs it."""

    slice: int = whole(SWEEP_SLICE, 1, 10_000, "Open tasks read per query.")
    hint_grace_ms: int = whole(
        HINT_GRACE_MS, 100, 3_600_000, "Age after which the message of an enqueued step is verified."
    )
    park_grace_ms: int = whole(
        PARK_GRACE_MS, 100, 3_600_000, "Age after which another process takes over a stored result."
    )
    idle_grace_ms: int = whole(IDLE_GRACE_MS, 100, 3_600_000, "Maximum time that a task may stay in a transient state.")
    unserved_timeout_seconds: int = whole(
        UNSERVED_TIMEOUT_SECONDS,
        0,
        31_536_000,
        "Time after which a step fails if no worker of its namespace has its handler; 0: it waits forever. Does "
        "not apply to a namespace without workers: its steps wait.",
    )
    forget_workers_after_seconds: int = whole(
        FORGET_WORKERS_SECONDS,
        60,
        31_536_000,
        "Time that `tasker worker list` still shows a process that is gone.",
    )


class TaskTemplates(Table):
    """Locations of templates."""

    search_paths: Annotated[tuple[Pattern, ...], Field(min_length=1)] = several(
        SEARCH_PATHS,
        "Patterns of the template files that `tasker worker` serves if its command line names none.",
    )
