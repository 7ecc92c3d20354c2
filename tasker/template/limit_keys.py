"""Keys of limits in templates: of steps, attempts, open and unique tasks; of fairness, and of what a step needs of its
worker."""

from __future__ import annotations

from tasker.template.mapping import Key, Mapping
from tasker.template.names import LIMIT_NAME, LIMIT_NAME_RULE, MAX_NAME, NAME, NAME_RULE
from tasker.template.times import DataPlace, InputPlace, Rate
from tasker.template.value_kinds import Choice, ListOf, MapOf, Number, Text

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
            "The path of a value in the input, such as `input.tenant`: the tasks with the same value are a flow.",
            required=True,
        ),
        Key("weights", MapOf(WEIGHT), "How many steps of a flow are claimed in each round, by the value of the key."),
        Key("default", WEIGHT, "The weight of every other flow.", default=1),
    ),
)

NAMED_LIMIT = Mapping(
    "a limit of `limits`",
    (
        Key(
            "name",
            Text(LIMIT_NAME, LIMIT_NAME_RULE, max_length=MAX_NAME),
            "Its name in the configuration: the table `[limits.NAME]`.",
            required=True,
        ),
        Key(
            "key",
            DataPlace(),
            "The path of a value: the limit applies to each value separately; without it, to all steps together.",
        ),
    ),
    shorthand="name",
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

NEEDS_OF_WORKERS = (
    Key(
        "requires",
        ListOf(Text(NAME, NAME_RULE, max_length=MAX_NAME)),
        "Tags that a worker must have to run the step (`worker.tags`, `--tags`): `[gpu]`.",
    ),
    Key(
        "slots",
        Number(whole=True, minimum=1, maximum=1000),
        "How many slots of its worker (`--concurrency`) the step uses while it runs.",
        default=1,
    ),
)
