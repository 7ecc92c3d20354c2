"""Keys of templates that apply when a task is submitted: identity, tenant, unique and debounce keys, rates."""

from __future__ import annotations

from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.documents import DocumentReading, Path
from tasker.template.mapping import Key, Mapping
from tasker.template.names import COLLECT, COLLECTED, MAX_COUNT
from tasker.template.times import Duration, InputPlace
from tasker.template.value_kinds import INVALID, Choice, Number
from tasker.template.yaml.nodes import Node

WHILE_RUNNING = Choice(("while_running",))


@dataclass(frozen=True)
class UniqueMapping(Mapping):
    """Mapping with the path of the unique key, or the word `while_running`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the mapping; {} for the word alone."""
        if isinstance(node.value, dict):
            return super().read(node, path, reading)
        return INVALID if WHILE_RUNNING.read(node, path, reading) is INVALID else {}

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [WHILE_RUNNING.json_schema(), super().json_schema()]}


UNIQUE = UniqueMapping(
    "`unique`",
    (
        Key(
            "key",
            InputPlace(),
            "The path of a value in the input: one task for each value runs at a time.",
            required=True,
        ),
    ),
)

DEBOUNCE = Mapping(
    "`debounce`",
    (
        Key(
            "key",
            InputPlace(),
            "The path of a value in the input: submissions with the same value are merged; without it, all of them.",
        ),
        Key("wait", Duration(), "How long after its last submission a task begins.", required=True),
        Key(
            "max_wait",
            Duration(),
            "How long after its first submission a task begins at the latest; by default ten times `wait`.",
        ),
        Key(
            "keep",
            Choice(("latest", COLLECT)),
            f"The input of the task: that of its last submission; with `collect` and all inputs as `{COLLECTED}`.",
            default="latest",
        ),
    ),
)

TENANT = Mapping(
    "`tenant`",
    (Key("from", InputPlace(), "The path of the tenant's name in the input.", required=True),),
    shorthand="from",
)

OF_SUBMISSIONS = (
    Key(
        "identity_strategy",
        Choice(("strict", "caller_provided", "always_unique")),
        "When two submissions are the same task; with `unique` or `debounce` the default is `always_unique`.",
        default="strict",
    ),
    Key("tenant", TENANT, "Tenant of a task, read from its input."),
    Key("unique", UNIQUE, "Only one task of each key runs at a time; another submission returns that task."),
    Key("debounce", DEBOUNCE, "Submissions of one key in a short time are merged into one task."),
    Key(
        "max_submits_per_minute",
        Number(whole=True, minimum=1, maximum=MAX_COUNT),
        "How many tasks of the template may be submitted in a minute.",
    ),
)
