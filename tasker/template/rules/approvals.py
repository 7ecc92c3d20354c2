"""Rules of steps that wait for the decision of persons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.template.documents import StepDraft
from tasker.template.durations import readable_duration


def check_approval(step: StepDraft) -> None:
    """Check that an approval can be decided, and that its reminders and its escalation come in time."""
    _check_form(step)
    _check_quorum(step)
    _check_times(step)


def _check_form(step: StepDraft) -> None:
    form = step.values.get("form")
    if not isinstance(form, Mapping):
        return
    if not isinstance(form.get("properties"), Mapping):
        hint = "write {type: object, properties: {note: {type: string}}}"
        step.report("T194", "the form has no fields: expected `properties`", step.location("form"), hint)
    elif "$ref" in str(form):
        step.report("T194", "a form has no `$ref`", step.location("form"), "write the field itself")


def _check_quorum(step: StepDraft) -> None:
    quorum = step.values.get("quorum", 1)
    persons = [step.values.get("from"), step.values.get("escalate", {}).get("to")]
    known: set[str] = set()
    for person in persons[: 2 if "escalate" in step.values else 1]:
        if not isinstance(person, Mapping) or "permissions" in person or "subjects" not in person:
            return
        subjects = person.get("subjects", ())
        if any(not isinstance(subject, str) for subject in subjects):
            return  # a path, which may name several
        known.update(subjects)
    if quorum > len(known):
        hint = "name more persons, use `permissions`, or lower the `quorum`"
        message = f"`{step.name}` needs {quorum} persons, and {len(known)} may decide"
        step.report("T195", message, step.location("quorum"), hint)


def _check_times(step: StepDraft) -> None:
    timeout = step.values.get("timeout")
    for path in (("reminders", "every"), ("escalate", "after")):
        seconds: Any = step.values.get(path[0], {}).get(path[1])
        if not isinstance(seconds, int | float):
            continue
        if seconds < 1:
            step.report("T196", f"`{path[1]}`: expected at least 1s", step.location(*path), "such as 1d")
        elif isinstance(timeout, int | float) and seconds >= timeout:
            message = f"`{path[0]}` would begin after the `timeout`, {readable_duration(timeout)}"
            step.report("T196", message, step.location(*path), f"shorten `{path[1]}`, or lengthen the `timeout`")
