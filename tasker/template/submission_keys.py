"""Keys of templates that apply when a task is submitted: identity, tenant, unique key, tasks per minute."""

from __future__ import annotations

from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.documents import DocumentReading, Path
from tasker.template.mapping import Key, Mapping
from tasker.template.names import MAX_COUNT
from tasker.template.times import InputPlace
from tasker.template.value_kinds import INVALID, Choice, Number
from tasker.template.yaml.nodes import Node

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

OF_SUBMISSIONS = (
    Key(
        "identity_strategy",
        Choice(("strict", "caller_provided", "always_unique")),
        "When two submissions are the same task; with `unique` the default is `always_unique`.",
        default="strict",
    ),
    Key("tenant", TENANT, "For whom a task runs, by its input."),
    Key("unique", UNIQUE, "A submission with the key of a task that runs answers with that task."),
    Key(
        "max_submits_per_minute",
        Number(whole=True, minimum=1, maximum=MAX_COUNT),
        "How many tasks of the template are submitted in a minute.",
    ),
)
