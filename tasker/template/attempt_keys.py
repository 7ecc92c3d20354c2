"""Keys of a step about its attempts: where the handler runs, what a repetition does, and the circuit breaker."""

from __future__ import annotations

from tasker.template.effects import EFFECTS, IDEMPOTENT
from tasker.template.mapping import Key, Mapping
from tasker.template.names import MAX_NAME, NAME, NAME_RULE
from tasker.template.times import DataPlace, Duration
from tasker.template.value_kinds import Choice, Number, Text

EXECUTION = Mapping(
    "`execution`",
    (
        Key("mode", Choice(("async", "thread", "process")), "Where the handler runs; otherwise by its kind."),
        Key(
            "memory_mb",
            Number(whole=True, minimum=64, maximum=1024 * 1024),
            "Memory that the process may hold, in MB, with Python itself; only with `mode: process`.",
        ),
    ),
)

CIRCUIT_BREAKER = Mapping(
    "`circuit_breaker`",
    (
        Key(
            "name",
            Text(NAME, NAME_RULE, max_length=MAX_NAME),
            "What the handler depends on; in a worker the steps that name it share one breaker.",
        ),
        Key(
            "failure_threshold",
            Number(whole=True, minimum=1, maximum=100),
            "Failures in a row that open it.",
            default=5,
        ),
        Key(
            "timeout_seconds",
            Number(above=0, maximum=86_400),
            "Seconds for which it defers attempts before it permits one as a trial.",
            default=30,
        ),
        Key(
            "success_threshold",
            Number(whole=True, minimum=1, maximum=100),
            "Successful trials in a row that close it.",
            default=2,
        ),
    ),
)

EFFECT = Key(
    "effect",
    Choice(tuple(EFFECTS)),
    "What a second execution of the handler would do: nothing outside (`pure`), nothing more (`idempotent`), harm "
    "(`once`), or it is part of the transaction that completes the step (`transactional`).",
    default=IDEMPOTENT,
)

MEMOIZE = Key(
    "memoize",
    Mapping(
        "`memoize`",
        (
            Key(
                "key",
                DataPlace(),
                "The place of a value on which alone the result depends: `input.customer.id`, `steps.quote.id`; "
                "without it everything that the handler reads.",
            ),
            Key("ttl", Duration(), "How long a stored result stands for calls of the handler.", required=True),
        ),
    ),
    "Uses a stored result in place of a call of the handler; only with `effect: pure`.",
)

ATTEMPTS_OF_STEPS = (
    Key("execution", EXECUTION, "Where the handler runs."),
    EFFECT,
    MEMOIZE,
    Key(
        "on_worker_lost",
        Choice(("retry", "fail")),
        "What happens when the worker dies while the handler runs; `fail` for a step that must not run twice.",
        default="retry",
    ),
    Key("circuit_breaker", CIRCUIT_BREAKER, "Puts the step off while its handler keeps failing, without an attempt."),
)
"""Keys of a step that say how its attempts run."""
