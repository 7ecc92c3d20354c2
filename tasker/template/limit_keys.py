"""Keys of limits in templates: of steps that run at the same time, of attempts in a time, and of open tasks; and of
fairness among tasks."""

from __future__ import annotations

from tasker.template.mapping import Key, Mapping
from tasker.template.times import DataPlace, InputPlace, Rate
from tasker.template.value_kinds import Choice, MapOf, Number

CONCURRENCY = Mapping(
    "`concurrency`",
    (
        Key(
            "key",
            DataPlace(),
            "The place of a value that shares the limit: `input.customer.id`, `steps.quote.account`; without it there "
            "is one limit for all.",
        ),
        Key(
            "limit",
            Number(whole=True, minimum=1, maximum=1_000_000),
            "How many steps with the same value of the key run at the same time.",
            required=True,
        ),
        Key(
            "scope",
            Choice(("step", "template", "namespace")),
            "Whose steps share the limit: this step's, those of its template, or of its namespace.",
            default="step",
        ),
    ),
)

RATE_LIMIT = Mapping(
    "`rate_limit`",
    (
        Key("key", DataPlace(), "The place of a value that has the rate to itself; without it there is one for all."),
        Key(
            "rate", Rate(), "How many attempts begin in a time, in all tasks: `100/s`, `30/m`, `500/h`.", required=True
        ),
        Key(
            "burst",
            Number(whole=True, minimum=1, maximum=1_000_000),
            "How many attempts begin at once after a pause; otherwise those of a quarter of a second and one.",
        ),
    ),
)

WEIGHT = Number(above=0, maximum=1_000_000)
FAIRNESS = Mapping(
    "`fairness`",
    (
        Key(
            "key",
            InputPlace(),
            "The place of a value in the input, such as `input.tenant`: the tasks of each value are a flow.",
            required=True,
        ),
        Key("weights", MapOf(WEIGHT), "How many turns single flows get for one of the others, by the value."),
        Key("default", WEIGHT, "The weight of every other flow.", default=1),
    ),
)

TASK_CONCURRENCY = Mapping(
    "the template's `concurrency`",
    (
        Key(
            "key",
            InputPlace(),
            "The place of a value in the input that shares the limit; without it there is one limit for all tasks.",
        ),
        Key(
            "limit",
            Number(whole=True, minimum=1, maximum=1_000_000),
            "How many tasks with the same value of the key are open at the same time.",
            required=True,
        ),
        Key(
            "on_limit",
            Choice(("wait", "cancel_new", "cancel_running")),
            "What happens to a task above the limit: it waits, it is cancelled, or the oldest running one is.",
            default="wait",
        ),
    ),
)
