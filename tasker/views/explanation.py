"""Explanation why the steps of a task do not run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from shlex import quote
from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.builtin import plugin_of
from tasker.views.explain_reasons import NOBODY_AT_WORK, REASONS, Reason, filled
from tasker.views.model import published

Values = Mapping[str, Any]

MOST_COUNTED = 10_000
"""Limit up to which the database counts the steps ahead of a held one."""
LONGEST_MESSAGE = 200
TIMES = (
    "ends_at",
    "since",
    "due_at",
    "started_at",
    "deadline_at",
    "lease_until",
    "paused_at",
    "hinted_at",
    "refused_since",
    "latest_at",
    "at",
)
LISTS = ("parents", "failed", "workers", "refused_by", "handlers", "lacking", "holders", "tags")


def words_of(values: Values, now: datetime, zone: tzinfo | None) -> dict[str, str]:
    """Return all words that the values provide. Times are in `zone`, or in the local one if it is None."""
    words = {name: _text(value) for name, value in values.items() if isinstance(value, str | int | float)}
    words |= {name: moment(str(values[name]), now, zone) for name in TIMES if values.get(name)}
    words |= {name: listed(values[name]) for name in LISTS if values.get(name)}
    if plugins := sorted({plugin for name in values.get("handlers") or () if (plugin := plugin_of(name))}):
        words["plugin"] = listed(plugins)
    if values.get("parents") and values.get("left"):
        words["parents"] = listed(values["parents"], values["left"])
    elif "left" in values:
        words["parents"] = _count(values["left"], "step")
    if "ahead" in values:
        words["ahead"] = _ahead(values["ahead"])
        words["before"] = _count(values["ahead"], "step") if values["ahead"] else ""
    for name, noun in (("enqueued", "step"), ("free", "free slot"), ("draining", "worker")):
        if name in values:
            words[name] = _count(values[name], noun) if values[name] else ""
    words["error"] = error_text(values.get("error_type"), values.get("message"))
    return words | _pause_words(values.get("pause"), now, zone)


def moment(text: str, now: datetime, zone: tzinfo | None) -> str:
    """Return the time of day, with the date if it is not the day of `now`."""
    then, today = datetime.fromisoformat(text).astimezone(zone), now.astimezone(zone)
    return then.strftime("%H:%M:%S" if then.date() == today.date() else "%Y-%m-%d %H:%M:%S")


def listed(names: Sequence[str], count: int | None = None) -> str:
    """Return the names, and how many more there are of `count`."""
    more = (count or 0) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


MARKED = re.compile(r"\n  (.+)\n *\^+$")
"""Last lines of a message about an expression: the expression, and marks under a part of it."""


def flattened(text: str) -> str:
    """Return the text on one line, without marks that mean something below an expression only."""
    return " ".join(MARKED.sub(r" (\1)", text).split())


def error_text(error_type: str | None, message: str | None) -> str:
    """Return type and message of a failure on one line."""
    flat = flattened(message or "")
    short = flat if len(flat) <= LONGEST_MESSAGE else f"{flat[: LONGEST_MESSAGE - 1]}…"
    return ": ".join(filter(None, (error_type, short)))


def paused_target(pause: Values) -> tuple[str, str]:
    """Return the kind of the paused target, and its name as the commands accept it."""
    kind = next(key for key in ("queue", "task", "step", "template", "namespace") if pause.get(key))
    if kind in ("queue", "task"):
        return kind, str(pause[kind])
    return kind, "/".join(str(pause[key]) for key in ("namespace", "template", "step") if pause.get(key))


def resume_command(pause: Values) -> str:
    """Return the command that ends a pause."""
    kind, name = paused_target(pause)
    return f"tasker resume {name}" if kind == "namespace" else f"tasker resume --{kind} {name}"


def again_command(task_uuid: str, steps: Sequence[str], count: int) -> str:
    """Return the rest of the `tasker task` command that runs these failed steps again."""
    return f"step reset {task_uuid} {quote(steps[0])}" if count == 1 else f"retry {task_uuid}"


def _pause_words(pause: Values | None, now: datetime, zone: tzinfo | None) -> dict[str, str]:
    if not pause:
        return {}
    return {
        "actor": pause["actor"] or "somebody",
        "because": error_text(None, pause["reason"]),
        "target": " ".join(paused_target(pause)),
        "paused_at": moment(pause["paused_at"], now, zone),
        "resume": resume_command(pause),
    }


def _ahead(number: int) -> str:
    if number == 0:
        return "only the queue"
    more = " or more" if number >= MOST_COUNTED else ""
    return f"{number:,}{more} more urgent {'step' if number == 1 else 'steps'}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,}"


NO_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)


@published(
    "ExplainedReason",
    aliases={"of": "template_steps"},
    derived={"sentence": "sentence_in_utc", "remedy": "remedy_for_callers"},
    unpublished=("task_uuid", "at", "alive"),
)
@dataclass(frozen=True, slots=True)
class Explained:
    """Reason that `count` steps do not run; the first of them are listed by name.

    `template_steps` are their steps in the template. Times in the sentences are in UTC.
    """

    reason: str
    steps: Sequence[str]
    of: Sequence[str]
    count: int
    needs_somebody: bool
    """True if nothing changes without an operator."""
    since: datetime | None
    values: Mapping[str, Any]
    """Values that fill the sentence."""
    task_uuid: str = ""
    at: datetime = NO_MOMENT
    alive: int = 0

    def sentence(self, zone: tzinfo | None = None) -> str:
        """Return why the steps do not run, in one sentence. Times are in `zone`, or in the local one if it is None."""
        return filled(self._known.sentence, words_of(self.values, self.at, zone))

    @property
    def _known(self) -> Reason:
        """The reason; one of a newer server is known by its name only."""
        return REASONS.get(self.reason) or Reason(self.reason.replace("_", " "), "")

    @property
    def sentence_in_utc(self) -> str:
        """Sentence with its times in UTC."""
        return self.sentence(UTC)

    def remedy(self, database: str = "") -> str:
        """Return what would change it. `database` are the options that select the database in a command."""
        reason = self._known
        if reason.by_any_process and not self.alive:
            return NOBODY_AT_WORK
        again = again_command(self.task_uuid, self.steps, self.count) if self.steps else ""
        step = quote(self.steps[0]) if self.steps else ""
        placeholders = {"task": self.task_uuid, "step": step, "again": again, "db": database}
        return filled(reason.remedy, words_of(self.values, self.at, None) | placeholders)

    @property
    def remedy_for_callers(self) -> str:
        """Remedy without the options that select a database."""
        return self.remedy()

    def to_dict(self, zone: tzinfo | None = None) -> dict[str, Any]:
        """Return the group as a mapping of plain values."""
        return {
            "reason": self.reason,
            "steps": list(self.steps),
            "count": self.count,
            "sentence": self.sentence(zone),
            "remedy": self.remedy(),
            "needs_somebody": self.needs_somebody,
            "since": self.since and self.since.isoformat(),
            "values": dict(self.values),
        }

    def redacted_by(self, redact: Callable[[Any], Any]) -> Explained:
        """Return the group with its values redacted, except times: the sentence needs them."""
        times = {name: value for name, value in self.values.items() if name in TIMES}
        others = {name: value for name, value in self.values.items() if name not in TIMES}
        return replace(self, values={**redact(others), **times})


@published(
    "ExplanationResponse",
    aliases={"alive": "processes_at_work", "more": "more_reasons"},
    derived={"needs_somebody": "needs_somebody"},
)
@dataclass(frozen=True, slots=True)
class Explanation:
    """Reasons that a task does not proceed, those that need an operator first; no reasons if no steps are left to
    run."""

    task_uuid: str
    namespace: str
    template: str
    status: str
    finished: bool
    at: datetime
    alive: int
    """Live processes, in any namespace."""
    reasons: Sequence[Explained]
    more: int

    @classmethod
    def of_published(cls, **values: Any) -> Explanation:
        """Return the explanation with the values that its reasons share with it."""
        shared = {name: values[name] for name in ("task_uuid", "at", "alive")}
        return cls(**{**values, "reasons": [replace(reason, **shared) for reason in values["reasons"]]})

    @property
    def needs_somebody(self) -> bool:
        """True if any reason needs an operator."""
        return any(reason.needs_somebody for reason in self.reasons)

    def to_dict(self, zone: tzinfo | None = None) -> dict[str, Any]:
        """Return the explanation as a mapping of plain values (`tasker task explain --format json`)."""
        return {
            "task_uuid": self.task_uuid,
            "namespace": self.namespace,
            "template": self.template,
            "status": self.status,
            "finished": self.finished,
            "at": self.at.isoformat(),
            "processes_at_work": self.alive,
            "needs_somebody": self.needs_somebody,
            "reasons": [reason.to_dict(zone) for reason in self.reasons],
            "more_reasons": self.more,
        }


def explanation(row: Mapping[str, Any]) -> Explanation:
    """Create the explanation from the result of `tasker.explain_v1`."""
    at = datetime.fromisoformat(row["at"])
    reasons = [_explained(group, row["task_uuid"], at, row["alive"]) for group in row["groups"]]
    fields = ("task_uuid", "namespace", "template", "status", "finished", "alive", "more")
    return Explanation(**{name: row[name] for name in fields}, at=at, reasons=reasons)


def _explained(group: Mapping[str, Any], task_uuid: str, at: datetime, alive: int) -> Explained:
    reason = REASONS[group["reason"]]
    return Explained(
        reason=group["reason"],
        count=group["count"],
        steps=group["steps"],
        of=group["of"],
        since=group["since"] and datetime.fromisoformat(group["since"]),
        values=group["values"],
        needs_somebody=reason.needs_somebody or (reason.by_any_process and not alive),
        task_uuid=task_uuid,
        at=at,
        alive=alive,
    )
