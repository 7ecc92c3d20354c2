"""Differences of two versions of a template, and whom each of them breaks. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.template.builtin import BUILTIN
from tasker.template.diagnostics import listed
from tasker.template.normalized import normalized
from tasker.template.plan import Plan
from tasker.template.schema_fit import differences
from tasker.template.schema_misfits import Difference, Misfit

if TYPE_CHECKING:
    from tasker.template.compile import Places


class Reader(StrEnum):
    """Party that a change concerns."""

    RUNNING = "running_tasks"
    """Tasks that were submitted with the old version; they keep it."""
    CALLERS = "callers"
    """Programs that submit tasks, read results, or exchange events with them."""
    HANDLERS = "handlers"
    """Code that runs the steps, and the workers that have it."""
    NEW_TASKS = "new_tasks"
    """Tasks submitted from now on behave otherwise; nothing has to be changed for it."""


class Level(StrEnum):
    """Severity of a change for its reader."""

    BREAKING = "breaking"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Change:
    """Difference as one reader sees it.

    `path` is the canonical path in the template (`steps.charge.handler`); `before` and `after` are its places as
    `file:line`, None where the text is not known.
    """

    code: str
    reader: Reader
    level: Level
    path: str
    message: str
    before: str | None = None
    after: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain data; `breaking` repeats the level."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {"code": self.code, "breaking": self.level is Level.BREAKING, **values}


@dataclass(frozen=True, slots=True)
class Version:
    """Plan, and its source if that is known."""

    plan: Plan
    places: Places | None = None

    def place(self, path: tuple[str, ...]) -> str | None:
        return None if self.places is None else f"{self.places.file}:{self.places.of(*path).line}"


CONCERNS: Mapping[str, tuple[Reader, Level, str]] = {
    "name": (Reader.CALLERS, Level.BREAKING, "tasks are submitted by another name"),
    "namespace_name": (
        Reader.CALLERS,
        Level.BREAKING,
        "tasks are submitted to another namespace, and need workers that serve it",
    ),
    "identity_strategy": (
        Reader.CALLERS,
        Level.BREAKING,
        "duplicates are recognized otherwise: a task that exists may be submitted again",
    ),
    "tenant": (Reader.CALLERS, Level.WARNING, "tasks get another tenant"),
    "unique": (Reader.CALLERS, Level.WARNING, "other submissions return a running task in place of a new one"),
    "debounce": (Reader.CALLERS, Level.WARNING, "other submissions are merged"),
    "max_submits_per_minute": (Reader.CALLERS, Level.WARNING, "submissions are refused from another number on"),
    "task_events": (Reader.CALLERS, Level.WARNING, "events of the ends of tasks begin or stop"),
    "expires_in": (Reader.CALLERS, Level.WARNING, "tasks that nobody began are cancelled after another time"),
    "deadline": (Reader.CALLERS, Level.WARNING, "tasks fail after another time"),
    "requires": (Reader.HANDLERS, Level.WARNING, "unserved until a worker has these tags"),
    "slots": (Reader.HANDLERS, Level.WARNING, "unserved until a worker has so many slots"),
    "execution": (Reader.HANDLERS, Level.WARNING, "the handler runs elsewhere"),
}
"""Reader, level and reason of changed keys; every other key is about new tasks only."""

NOT_COMPARED = frozenset({"version", "steps", "loaded_from"})
HARMLESS = frozenset({Misfit.UNLISTED})
UNCERTAIN = frozenset({Misfit.UNDECIDED, Misfit.UNDESCRIBED})
MOST_DIFFERENCES = 50
"""Differences of two schemas that are listed."""
MOST_NAMES = 5
"""Steps that a message lists."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes from one version of a template to another; without one of them, that it is new or gone."""

    before: Version | None
    after: Version | None
    changes: tuple[Change, ...] = field(default=())

    @property
    def level(self) -> Level | None:
        """The highest level; None without changes."""
        levels = {change.level for change in self.changes}
        return next((level for level in Level if level in levels), None)


def compare(before: Version | None, after: Version | None) -> Comparison:
    """Return every difference of two versions of a template, by reader. One of them may be missing."""
    if after is None:
        if before is None:
            return Comparison(None, None)
        message = "the template is gone: tasks can no longer be submitted from its file; a registered version remains"
        change = Change("template_removed", Reader.CALLERS, Level.BREAKING, "", message, before.place(()), None)
        return Comparison(before, None, (change,))
    if before is None:
        change = Change(
            "template_added", Reader.NEW_TASKS, Level.INFO, "", "the template is new", None, after.place(())
        )
        return Comparison(None, after, (change,))
    changes = tuple(_Differ(before, after).changes())
    order = {name: number for number, name in enumerate((*Level, *Reader))}
    return Comparison(before, after, tuple(sorted(changes, key=lambda c: (order[c.level], order[c.reader]))))


class _Differ:
    def __init__(self, before: Version, after: Version) -> None:
        self._before, self._after = before, after
        self._old, self._new = normalized(before.plan), normalized(after.plan)
        self._old_steps = {step["name"]: step for step in self._old["steps"]}
        self._new_steps = {step["name"]: step for step in self._new["steps"]}

    def changes(self) -> Iterator[Change]:
        for key in dict.fromkeys([*self._old, *self._new]):
            old, new = self._old.get(key), self._new.get(key)
            if key in NOT_COMPARED or old == new:
                continue
            yield from self._of_input(old, new) if key == "input_schema" else self._of_key((key,), old, new)
        for name in dict.fromkeys([*self._old_steps, *self._new_steps]):
            old, new = self._old_steps.get(name), self._new_steps.get(name)
            if old is None or new is None:
                yield from self._of_missing(name, old, new)
            elif old != new:
                yield from self._of_step(name, old, new)

    def _change(self, code: str, reader: Reader, level: Level, path: tuple[str, ...], message: str) -> Change:
        return Change(code, reader, level, ".".join(path), message, self._before.place(path), self._after.place(path))

    def _of_key(self, path: tuple[str, ...], old: Any, new: Any) -> Iterator[Change]:
        reader, level, why = CONCERNS.get(path[-1], (Reader.NEW_TASKS, Level.INFO, ""))
        message = f"`{path[-1]}` {_from_to(old, new)}"
        yield self._change(f"{path[-1]}_changed", reader, level, path, f"{message}: {why}" if why else message)

    def _of_missing(self, name: str, old: Any, new: Any) -> Iterator[Change]:
        path = ("steps", name)
        if old is None:
            yield self._change("step_added", Reader.NEW_TASKS, Level.INFO, path, f"the step `{name}` is new")
            return
        yield self._change("step_removed", Reader.NEW_TASKS, Level.INFO, path, f"the step `{name}` is gone")
        yield from self._of_old_callable(path, old)

    def _of_old_callable(self, path: tuple[str, ...], old: Any) -> Iterator[Change]:
        """Yield that open tasks need a callable which no step of the new version has."""
        callable_ = (old.get("handler") or {}).get("callable")
        kept = {(step.get("handler") or {}).get("callable") for step in self._new["steps"]}
        if callable_ is not None and callable_ not in kept and callable_ not in BUILTIN:
            message = f"open tasks still need the handler `{callable_}`: keep it in a worker until they have ended"
            yield self._change("callable_removed", Reader.RUNNING, Level.WARNING, path, message)

    def _of_step(self, name: str, old: Any, new: Any) -> Iterator[Change]:
        for key in dict.fromkeys([*old, *new]):
            path, was, becomes = ("steps", name, key), old.get(key), new.get(key)
            if was == becomes:
                continue
            match key:
                case "handler":
                    yield from self._of_handler(path, old, new)
                case "result_schema":
                    yield from self._of_result(path, was, becomes)
                case "publishes_events":
                    yield from self._of_events(path, was or (), becomes or ())
                case "event" | "events":
                    message = f"the step waits for another event: {_from_to(was, becomes)}"
                    yield self._change("awaited_event_changed", Reader.CALLERS, Level.BREAKING, path, message)
                case _:
                    yield from self._of_key(path, was, becomes)

    def _of_handler(self, path: tuple[str, ...], old: Any, new: Any) -> Iterator[Change]:
        was, becomes = (step.get("handler") or {} for step in (old, new))
        if was.get("callable") != becomes.get("callable"):
            served = becomes.get("callable") in BUILTIN or not becomes
            level = Level.INFO if served else Level.BREAKING
            message = f"the callable {_from_to(was.get('callable'), becomes.get('callable'))}"
            yield self._change("callable_changed", Reader.HANDLERS, level, path, message)
            yield from self._of_old_callable(path, old)
        for key in ("method", "resolver"):
            if was.get(key) != becomes.get(key) and was and becomes:
                message = f"the {key} of the handler {_from_to(was.get(key), becomes.get(key))}"
                yield self._change(f"{key}_changed", Reader.HANDLERS, Level.BREAKING, path, message)
        if was.get("initialization") != becomes.get("initialization"):
            message = "the handler gets other fixed settings (`initialization`)"
            yield self._change("initialization_changed", Reader.NEW_TASKS, Level.INFO, path, message)

    def _of_input(self, old: Any, new: Any) -> Iterator[Change]:
        path = ("input_schema",)
        narrower, wider = differences(old, new), differences(new, old)
        what = "inputs that the old version takes may be refused"
        yield from self._of_schema("input_schema_narrowed", Reader.CALLERS, path, narrower, what)
        readers = [step["name"] for step in self._new["steps"] if step.get("handler") and "inputs" not in step]
        if readers:
            what = f"handlers may get what they do not expect (read by {_named(readers)})"
            yield from self._of_schema("input_schema_widened", Reader.HANDLERS, path, wider, what, UNCERTAIN)

    def _of_result(self, path: tuple[str, ...], old: Any, new: Any) -> Iterator[Change]:
        narrower, wider = differences(old, new), differences(new, old)
        what = "results that the old version takes may be refused"
        yield from self._of_schema("result_schema_narrowed", Reader.HANDLERS, path, narrower, what)
        plan = self._after.plan
        entry = plan.entries.get(path[1], path[1])
        below = {step.made_for or step.name: step for step in map(plan.by_name.get, plan.below.of(entry)) if step}
        readers = [name for name in below if name != path[1]]
        if readers:
            what = f"steps below may get what they do not expect (read by {_named(readers)})"
            yield from self._of_schema("result_schema_widened", Reader.HANDLERS, path, wider, what, UNCERTAIN)
        else:
            what = "programs that read the result may get what they do not expect"
            weaker = frozenset(Misfit) - HARMLESS
            yield from self._of_schema("result_schema_widened", Reader.CALLERS, path, wider, what, weaker)

    def _of_schema(
        self,
        code: str,
        reader: Reader,
        path: tuple[str, ...],
        found: Iterable[Difference],
        what: str,
        uncertain: Collection[Misfit] = (Misfit.UNDECIDED,),
    ) -> Iterator[Change]:
        """Yield one change per difference: a warning if it is `uncertain`, else a breaking one."""
        relevant = [difference for difference in found if difference.misfit not in HARMLESS]
        for each in relevant[:MOST_DIFFERENCES]:
            level = Level.WARNING if each.misfit in uncertain else Level.BREAKING
            yield self._change(code, reader, level, self._inside(path, each), f"{each.path} {each.message}: {what}")
        if (more := len(relevant) - MOST_DIFFERENCES) > 0:
            yield self._change(code, reader, Level.WARNING, path, f"{more} more differences of this schema: {what}")

    def _inside(self, path: tuple[str, ...], difference: Difference) -> tuple[str, ...]:
        """Return the path of the top-level property in which the difference is, whose place is known."""
        name = difference.path.removeprefix("$.").partition(".")[0].partition("[")[0]
        return path if difference.path == "$" or name == "*" else (*path, "properties", name)

    def _of_events(self, path: tuple[str, ...], old: Iterable[Any], new: Iterable[Any]) -> Iterator[Change]:
        becomes = {event["name"]: event for event in new}
        was = {event["name"]: event for event in old}
        for name in dict.fromkeys([*was, *becomes]):
            if name not in becomes:
                message = f"the event `{name}` is no longer published"
                yield self._change("event_removed", Reader.CALLERS, Level.BREAKING, path, message)
            elif name not in was:
                message = f"the event `{name}` is new"
                yield self._change("event_added", Reader.NEW_TASKS, Level.INFO, path, message)
            elif was[name] != becomes[name]:
                found = differences(becomes[name].get("schema"), was[name].get("schema"))
                what = f"subscribers of `{name}` may get what they do not expect"
                changes = [*self._of_schema("event_schema_widened", Reader.CALLERS, path, found, what, UNCERTAIN)]
                yield from changes
                same = {key: value for key, value in was[name].items() if key != "schema"}
                if same != {key: value for key, value in becomes[name].items() if key != "schema"}:
                    message = f"the event `{name}` is published otherwise"
                    yield self._change("event_changed", Reader.CALLERS, Level.WARNING, path, message)


def _named(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return listed(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _from_to(old: Any, new: Any) -> str:
    was, becomes = _short(old), _short(new)
    if old is None:
        return f"is new: {becomes}" if becomes else "is new"
    if new is None:
        return f"is gone; it was {was}" if was else "is gone"
    return f"changes from {was} to {becomes}" if was and becomes else "changes"


def _short(value: Any) -> str:
    text = f"`{value}`" if isinstance(value, str) else str(value)
    return text if isinstance(value, str | int | float | list) and len(text) <= 60 else ""


def compare_all(before: Iterable[Version], after: Iterable[Version]) -> tuple[Comparison, ...]:
    """Compare the templates of two sources: those of equal names, and two single ones whatever their names.

    Of a name with several versions those with equal versions are compared, the others in their order.
    """
    old, new = list(before), list(after)
    if len(old) == len(new) == 1:
        return (compare(old[0], new[0]),)
    names = dict.fromkeys(_name(version) for version in (*old, *new))
    return tuple(
        compare(*pair)
        for name in names
        for pair in _pairs(*([v for v in side if _name(v) == name] for side in (old, new)))
    )


def _name(version: Version) -> tuple[str, str]:
    return version.plan.namespace, version.plan.name


def _pairs(old: list[Version], new: list[Version]) -> Iterator[tuple[Version | None, Version | None]]:
    versions = {version.plan.version: version for version in old}
    equal = [(versions[v.plan.version], v) for v in new if v.plan.version in versions]
    yield from equal
    taken = {version.plan.version for _, version in equal}
    rest = ([v for v in side if v.plan.version not in taken] for side in (old, new))
    yield from zip_longest(*rest)
