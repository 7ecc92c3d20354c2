"""Steps of a template before compilation, with the overrides of an environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.template.builtin import BUILTIN, BuiltinStep
from tasker.template.diagnostics import Position, Report, did_you_mean, listed
from tasker.template.effects import ONCE
from tasker.template.failure_words import FAIL_TASK
from tasker.template.step_types import DEFAULT, OF_RULES, WAITING, StepType

if TYPE_CHECKING:
    from tasker.template.yaml.nodes import Node

Path = tuple[str | int, ...]
"""Canonical keys and list positions from the root of the document."""


class DocumentReading:
    """Positions of the values and keys of one document by canonical path, the report, and the known built-in steps."""

    def __init__(self, report: Report, root: Position, builtin: Mapping[str, BuiltinStep] = BUILTIN) -> None:
        self.report, self.builtin = report, builtin
        self._values: dict[Path, Position] = {(): root}
        self._keys: dict[Path, Position] = {}

    def mark(self, path: Path, value: Position, key: Position | None = None) -> None:
        """Record the position of the value and, if it has one, of its key."""
        self._values[path] = value
        if key is not None:
            self._keys[path] = key

    def copy_marks(self, source: Path, target: Path) -> None:
        """Give the values below `target` the positions of those below `source`."""
        for marks in (self._values, self._keys):
            below = [(path, marks[path]) for path in marks if path[: len(source)] == source]
            marks.update({(*target, *path[len(source) :]): place for path, place in below})

    def mark_below(self, node: Node, path: Path) -> None:
        """Record the positions of everything in a value of any shape."""
        self.mark(path, node.location)
        if isinstance(node.value, dict):
            for name, entry in node.value.items():
                self._keys[(*path, name)] = entry.key
                self.mark_below(entry.node, (*path, name))
        elif isinstance(node.value, list):
            for number, item in enumerate(node.value):
                self.mark_below(item, (*path, number))

    def value(self, *path: str | int) -> Position:
        """Return the position of the value, or of the nearest mapping or list around it."""
        while path not in self._values:
            path = path[:-1]
        return self._values[path]

    def key(self, *path: str | int) -> Position:
        """Return the position of the key, or of the value if there is no key."""
        return self._keys.get(path) or self.value(*path)

    def has(self, *path: str | int) -> bool:
        """Return whether the document has a value there, readable or not."""
        return path in self._values

    def copy(self, source: Path, target: Path) -> None:
        """Let a value that is taken over from `source` have its positions there, and those of all values in it."""
        for positions in (self._values, self._keys):
            for path in [path for path in positions if path[: len(source)] == source]:
                positions[target + path[len(source) :]] = positions[path]


def with_defaults_of_template(document: Mapping[str, Any], reading: DocumentReading) -> Mapping[str, Any]:
    """Return the document with the keys of `defaults` in the steps that do not write them.

    The keys of a `retry` block are taken over one by one, unless the step names a profile.
    """
    defaults = document.get("defaults")
    if not defaults or "steps" not in document:
        return document
    steps = [_with_defaults(step, index, defaults, reading) for index, step in enumerate(document["steps"])]
    return {**document, "steps": steps}


def _with_defaults(step: Any, index: int, defaults: Mapping[str, Any], reading: DocumentReading) -> Any:
    if not isinstance(step, dict) or "rules" in step or step.get("type") in WAITING:
        return step  # the defaults are about handlers
    if step.get("effect") == ONCE:
        defaults = {key: value for key, value in defaults.items() if key not in ("retry", "on_worker_lost")}
    missing = {key: value for key, value in defaults.items() if not reading.has("steps", index, key)}
    for key in missing:
        reading.copy(("defaults", key), ("steps", index, key))
    own, default = step.get("retry"), defaults.get("retry")
    if isinstance(own, dict) and isinstance(default, dict) and "profile" not in own:
        added = {key: value for key, value in default.items() if not reading.has("steps", index, "retry", key)}
        for key in added:
            reading.copy(("defaults", "retry", key), ("steps", index, "retry", key))
        missing["retry"] = {**added, **own}
    return {**step, **missing}


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
    made_for: str | None = None
    """Step whose `when` or `for_each` this step was made for; None: the author wrote it."""
    on_failure: str = FAIL_TASK
    """Its own word, or that of the template (`tasker.template.failure_words`)."""
    run_on_failure: str | None = None
    handles: str | None = None
    """Step whose failure creates this one."""
    at_rest: bool = False
    """Whether `finally` names it."""
    undoes: str | None = None
    """Step of whose `compensate` this step was made; None: no such step."""

    @property
    def title(self) -> str:
        """Name for messages: that of the step that the author wrote."""
        return self.made_for or self.undoes or self.name

    @property
    def unreadable_dependencies(self) -> bool:
        """True if some of the dependencies could not be read."""
        missing = "dependencies" not in self.values and self.reading.has(*self.path, "dependencies")
        return missing or any(not isinstance(name, str) for name in self.values.get("dependencies", ()))

    @property
    def path(self) -> Path:
        """Path of the step in the document."""
        return ("steps", self.index) if self.undoes is None else ("steps", self.index, "compensate")

    def location(self, *keys: str | int) -> Position:
        """Return the position of a value of this step, or of the nearest value around it."""
        return self.reading.value(*self.path, *keys)

    def name_location(self) -> Position:
        return self.location("name")

    def dependency_location(self, name: str) -> Position:
        written = self.values.get("dependencies", ())
        if name not in written:  # a generated step
            return self.location("dependencies")
        return self.reading.value(*self.path, "dependencies", written.index(name))

    def report(self, code: str, message: str, location: Position, hint: str | None = None) -> None:
        self.reading.report.add(code, message, location, hint)


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
            line = drafts[draft.name].name_location().line
            draft.report("T030", f"a second step `{draft.name}`", draft.name_location(), f"the first is in line {line}")
        else:
            drafts[draft.name] = draft
    return list(drafts.values()), complete


def _draft(index: int, values: Mapping[str, Any], reading: DocumentReading) -> StepDraft:
    default = OF_RULES if "rules" in values else DEFAULT
    type_ = StepType(values.get("type", default)) if _type_is_known(index, values, reading) else None
    names = [name for name in values.get("dependencies", ()) if isinstance(name, str)]
    if type_ is not None and type_.traits.waits:
        from tasker.template.wait_keys import result_of_wait  # it imports this module

        values = {**values, "result_schema": result_of_wait(type_.traits.waits, values)}
        if type_.starts_children and isinstance(each := values.get("for_each"), dict) and "inputs" not in values:
            name = each.get("as", "item")
            values["inputs"] = {name: f"${{{name}}}"}
        if "on_timeout" in values and "on_failure" not in values:
            values["on_failure"] = values["on_timeout"]
            reading.copy_marks(("steps", index, "on_timeout"), ("steps", index, "on_failure"))
    draft = StepDraft(index, values["name"], type_, tuple(dict.fromkeys(names)), values, reading)
    if draft.name == EVERY_STEP:
        hint = "`ALL` means every step in `environments`"
        draft.report("T026", "no step can be named `ALL`", draft.name_location(), hint)
    _report_repeated(draft)
    return draft


def _type_is_known(index: int, values: Mapping[str, Any], reading: DocumentReading) -> bool:
    return "type" in values or not reading.has("steps", index, "type")


def _report_repeated(draft: StepDraft) -> None:
    written = list(draft.values.get("dependencies", ()))
    seen: set[str] = set()
    for position, name in enumerate(written):
        if isinstance(name, str) and name in seen:
            location = draft.reading.value(*draft.path, "dependencies", position)
            draft.report("T042", f"`{name}` is listed twice", location, "remove one of them")
        elif isinstance(name, str):
            seen.add(name)


@dataclass(frozen=True)
class StepOverrides:
    """Settings of a step that an environment may override. `retry_path` is the path of the applied `retry` block."""

    retry: Mapping[str, Any] | None
    retry_path: Path
    retry_overridden: bool
    timeout_seconds: float | None
    initialization: Mapping[str, Any]
    inputs: Mapping[str, Any] | None = None


Overrides = Mapping[str, Sequence[tuple[Path, Mapping[str, Any]]]]
"""Overrides of an environment with their paths, by step name."""


def overrides(document: Mapping[str, Any], environment: str | None) -> Overrides:
    """Return the overrides of an environment; None: none."""
    by_step: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {}
    for path, override in entries(document, environment):
        by_step.setdefault(override["name"], []).append((path, override))
    return by_step


def settings(step: StepDraft, overridden: Overrides) -> StepOverrides:
    """Return the step's settings, overridden by those of `ALL`, then by the step's own entry."""
    handler = step.values.get("handler", {})
    result = StepOverrides(
        retry=step.values.get("retry"),
        retry_path=(*step.path, "retry"),
        retry_overridden=False,
        timeout_seconds=step.values.get("timeout_seconds"),
        initialization=handler.get("initialization", {}),
        inputs=step.values.get("inputs"),
    )
    for name in (EVERY_STEP, step.name):
        for path, override in overridden.get(name, ()):
            if name == EVERY_STEP and step.values.get("effect") == ONCE:
                override = {key: value for key, value in override.items() if key != "retry"}
            result = _overlay(result, path, override)
    return result


def check_overrides(steps: Sequence[StepDraft], document: Mapping[str, Any], reading: DocumentReading) -> None:
    """Report overrides of steps that do not exist, and two overrides of one step in one environment."""
    names = {step.name: step for step in steps}
    for environment in document.get("environments", {}):
        seen: set[str] = set()
        for path, override in entries(document, environment):
            name, location = override["name"], reading.value(*path, "name")
            if name not in names and name != EVERY_STEP:
                hint = did_you_mean(name, names) or f"steps: {listed(names)}"
                reading.report.add("T032", f"`{name}` is not a step of this template", location, hint)
            elif name in seen:
                reading.report.add("T032", f"a second override for `{name}`", location, "put both into one entry")
            seen.add(name)


def entries(document: Mapping[str, Any], environment: str | None) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the overrides of an environment, each with its path."""
    overrides = document.get("environments", {}).get(environment, {}).get("steps", ())
    for index, override in enumerate(overrides):
        if isinstance(override, dict) and "name" in override:
            yield ("environments", str(environment), "steps", index), override


def _overlay(below: StepOverrides, path: Path, override: Mapping[str, Any]) -> StepOverrides:
    retried = "retry" in override
    handler = override.get("handler", {})
    return StepOverrides(
        retry=override["retry"] if retried else below.retry,
        retry_path=(*path, "retry") if retried else below.retry_path,
        retry_overridden=retried or below.retry_overridden,
        timeout_seconds=override.get("timeout_seconds", below.timeout_seconds),
        initialization={**below.initialization, **handler.get("initialization", {})},
        inputs={**(below.inputs or {}), **override["inputs"]} if "inputs" in override else below.inputs,
    )
