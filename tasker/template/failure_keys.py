"""Keys of failure paths: what a step that fails for good means for its task."""

from __future__ import annotations

from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.diagnostics import did_you_mean
from tasker.template.documents import DocumentReading, Path
from tasker.template.failure_words import COMPENSATE, CONTINUE, FAIL_TASK, SKIP_CASCADE
from tasker.template.mapping import Key, Mapping
from tasker.template.value_kinds import INVALID, Boolean, Choice, ListOf, Text
from tasker.template.yaml.nodes import Node, describe

WORD = Choice((FAIL_TASK, CONTINUE, SKIP_CASCADE, COMPENSATE), aliases=(("fail", FAIL_TASK), ("skip", CONTINUE)))
BRANCH = Mapping(
    "`on_failure`", (Key("run", Text(), "The step that is created when this one fails for good.", required=True),)
)


@dataclass(frozen=True)
class OnFailure:
    """A word, or a mapping with the step to run."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the word, or the mapping."""
        if isinstance(node.value, dict):
            return BRANCH.read(node, path, reading)
        known = {word: word for word in WORD.values} | dict(WORD.aliases)
        if isinstance(node.value, str) and node.value in known:
            return known[node.value]
        if not node.broken:
            expected = "expected `fail_task`, `continue`, `skip_cascade`, `compensate` or `{run: STEP}`"
            hint = did_you_mean(str(node.value), known)
            reading.report.add("T023", f"{expected}, found {describe(node)}", node.location, hint)
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [WORD.json_schema(), BRANCH.json_schema()]}


FAILURES_OF_STEPS = (
    Key(
        "on_failure",
        OnFailure(),
        "What a failure of the step means for its task, once it will not be retried: `fail_task`, `continue` without "
        "its result, `skip_cascade` for the steps below it, `compensate`, or `{run: STEP}`.",
        default=FAIL_TASK,
    ),
    Key("optional", Boolean(), "Whether the task counts as complete without the step.", default=False),
)

FAILURES_OF_TEMPLATES = (
    Key("on_failure", WORD, "`on_failure` of the steps that do not write it.", default=FAIL_TASK),
    Key(
        "completion",
        Choice(("all", "partial")),
        "`partial`: a step that fails skips those below it, and the task ends with what could be done.",
        default="all",
    ),
    Key(
        "finally",
        ListOf(Text(), at_least_one=True),
        "Steps that run when all others have come to rest, however the task ends: complete, failed or cancelled.",
    ),
)
