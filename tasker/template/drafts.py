"""Steps of a document before compilation: canonical values with their positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.step_types import DEFAULT, StepType
from tasker.template.diagnostics import Position
from tasker.template.reading import DocumentReading, Path

EVERY_STEP = "ALL"
"""Name in an environment that stands for every step; no step may have it."""


@dataclass(frozen=True)
class StepDraft:
    """Step as written. `type` is None if it could not be read."""

    index: int
    name: str
    type: StepType | None
    depends_on: tuple[str, ...]
    values: Mapping[str, Any]
    reading: DocumentReading

    @property
    def path(self) -> Path:
        """Path of the step in the document."""
        return ("steps", self.index)

    def place(self, *keys: str) -> Position:
        """Return the position of a value of this step, or of the nearest value around it."""
        return self.reading.value(*self.path, *keys)

    def name_place(self) -> Position:
        return self.place("name")

    def dependency_place(self, name: str) -> Position:
        return self.reading.value(*self.path, "dependencies", self.values["dependencies"].index(name))

    def report(self, code: str, message: str, place: Position, hint: str | None = None) -> None:
        self.reading.report.add(code, message, place, hint)


def make_drafts(steps: Iterable[Any], reading: DocumentReading) -> tuple[list[StepDraft], bool]:
    """Return the steps that have a unique name, and whether these are all steps of the document."""
    drafts: dict[str, StepDraft] = {}
    complete = True
    for index, values in enumerate(steps):
        if not isinstance(values, dict) or "name" not in values:
            complete = False
            continue
        draft = _draft(index, values, reading)
        if draft.name in drafts:
            line = drafts[draft.name].name_place().line
            draft.report("T030", f"a second step `{draft.name}`", draft.name_place(), f"the first is in line {line}")
        else:
            drafts[draft.name] = draft
    return list(drafts.values()), complete


def _draft(index: int, values: Mapping[str, Any], reading: DocumentReading) -> StepDraft:
    type_ = StepType(values.get("type", DEFAULT)) if _type_is_known(index, values, reading) else None
    names = [name for name in values.get("dependencies", ()) if isinstance(name, str)]
    draft = StepDraft(index, values["name"], type_, tuple(dict.fromkeys(names)), values, reading)
    if draft.name == EVERY_STEP:
        hint = "`ALL` means every step in `environments`"
        draft.report("T026", "no step can be named `ALL`", draft.name_place(), hint)
    _report_repeated(draft)
    return draft


def _type_is_known(index: int, values: Mapping[str, Any], reading: DocumentReading) -> bool:
    return "type" in values or not reading.has("steps", index, "type")


def _report_repeated(draft: StepDraft) -> None:
    written = list(draft.values.get("dependencies", ()))
    seen: set[str] = set()
    for position, name in enumerate(written):
        if isinstance(name, str) and name in seen:
            place = draft.reading.value(*draft.path, "dependencies", position)
            draft.report("T042", f"`{name}` is listed twice", place, "remove one of them")
        elif isinstance(name, str):
            seen.add(name)
