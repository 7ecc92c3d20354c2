"""Keys of limits in templates: steps at the same time, attempts in a time, open tasks, unique tasks."""

from __future__ import annotations

from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.documents import DocumentReading, Path
from tasker.template.mapping import Key, Mapping
from tasker.template.names import LIMIT_NAME, LIMIT_NAME_RULE, MAX_NAME
from tasker.template.times import DataPlace, InputPlace, Rate
from tasker.template.value_kinds import INVALID, Choice, Number, Text
from tasker.template.yaml.nodes import Node

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

NAMED_LIMIT = Mapping(
    "a limit of `limits`",
    (
        Key(
            "name",
            Text(LIMIT_NAME, LIMIT_NAME_RULE, max_length=MAX_NAME),
            "Its name in the configuration: the table `[limits.NAME]`.",
            required=True,
        ),
        Key("key", DataPlace(), "The place of a value that has the limit to itself; without it there is one for all."),
    ),
    shorthand="name",
)

WHILE_RUNNING = Choice(("while_running",))


@dataclass(frozen=True)
class UniqueMapping(Mapping):
    """Mapping with the place of the unique key, or `while_running` without one."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the mapping; {} for the word alone."""
        if isinstance(node.value, dict):
            return super().read(node, path, reading)
        return INVALID if WHILE_RUNNING.read(node, path, reading) is INVALID else {}

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [WHILE_RUNNING.json_schema(), super().json_schema()]}


UNIQUE = UniqueMapping(
    "`unique`",
    (Key("key", InputPlace(), "The place of a value in the input: of each value one task runs.", required=True),),
)

TENANT = Mapping(
    "`tenant`",
    (Key("from", InputPlace(), "The place of the tenant's name in the input.", required=True),),
    shorthand="from",
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
