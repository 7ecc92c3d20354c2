"""Schedules: their keys in a template, and the form in which they are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as AnyMapping
from dataclasses import asdict, field
from datetime import date, datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.diagnostics import Position, Report, did_you_mean, listed
from tasker.template.documents import DocumentReading, Path
from tasker.template.durations import duration_text
from tasker.template.mapping import Key, Mapping
from tasker.template.names import MAX_NAME, NAME, NAME_RULE
from tasker.template.plan import Plan
from tasker.template.schema_check import SchemaMismatch, check_input
from tasker.template.times import TIME, Duration
from tasker.template.value_kinds import INVALID, Choice, Free, ListOf, MapOf, Text, wrong_type
from tasker.template.yaml.nodes import Node
from tasker.template.yaml.source import read_documents

MISSED_FIRE = ("once", "all", "skip")
OVERLAP = ("skip", "queue", "allow", "cancel_running")
DST_GAP, DST_OVERLAP = ("next", "skip"), ("first", "both")
FIRE_VALUES = ("fire_time", "fire_date", "previous_fire_time", "schedule")
CRON_FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
CRON_EXPECTED = "a cron expression of 5 fields (minute hour day month weekday), or of 6 with seconds in front"
DATE = r"\d{4}-\d\d-\d\d"


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """Times of a schedule, and the context of its tasks. Either `cron` or `every_seconds` is set."""

    cron: str | None = None
    every_seconds: int | None = None
    """Seconds between fire times, counted from `start`, or from 1970-01-01 00:00 UTC."""
    timezone: str = "UTC"
    dst_gap: str = "next"
    dst_overlap: str | None = None
    """None: `both` for an expression that means each hour or each nth, otherwise `first`."""
    missed_fire: str = "once"
    overlap: str = "skip"
    jitter_seconds: float = 0
    start: str | None = None
    """First possible fire time, with a zone."""
    end: str | None = None
    """There is no fire time at or after it."""
    skip_dates: tuple[str, ...] = ()
    """Dates in the schedule's zone without fire times."""
    context: AnyMapping[str, Any] = field(default_factory=dict)
    context_from: AnyMapping[str, str] = field(default_factory=dict)
    """Fields of the task's context that get one of `FIRE_VALUES`."""

    @classmethod
    def parse(cls, data: AnyMapping[str, Any]) -> ScheduleSpec:
        """Restore a stored schedule. Raises `TypeError` for fields that this version does not know."""
        return cls(**{**data, "skip_dates": tuple(data.get("skip_dates", ()))})

    def stored(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as they are stored."""
        usual = asdict(ScheduleSpec())
        values = {name: value for name, value in asdict(self).items() if value != usual[name]}
        return {**values, **({"skip_dates": list(self.skip_dates)} if self.skip_dates else {})}

    def keys(self) -> dict[str, Any]:
        """Return the schedule with the keys of a template."""
        values = self.stored()
        for stored, key in (("every_seconds", "every"), ("jitter_seconds", "jitter")):
            if stored in values:
                values[key] = duration_text(values.pop(stored))
        return values


@dataclass(frozen=True)
class Cron:
    """Cron expression."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the expression; a mistake is reported at its field."""
        if not isinstance(node.value, str):
            return wrong_type(CRON_EXPECTED, node, reading, 'put it in quotes: "0 2 * * *"')
        problem = cron_problem(node.value)
        if problem is None:
            return " ".join(node.value.split()).upper()
        message, begin, length = problem
        quoted = node.location.length == len(node.value) + 2
        place = Position(node.location.line, node.location.column + quoted + begin, length)
        reading.report.add("T110", message, place, 'for example "0 2 * * *": each day at 02:00')
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^\s*\S+(\s+\S+){4,5}\s*$", "examples": ["0 2 * * *"]}


def cron_problem(text: str) -> tuple[str, int, int] | None:
    """Return what is wrong with a cron expression, with the begin and length of the place in it; None if nothing is."""
    from cronsim import CronSim, CronSimError  # lazy import, needed only for templates with schedules

    fields = [(match[0], match.start()) for match in re.finditer(r"\S+", text)]
    if len(fields) not in (5, 6):
        return f"expected {CRON_EXPECTED}, got {len(fields)} fields", 0, max(1, len(text))
    names = CRON_FIELDS if len(fields) == 5 else ("second", *CRON_FIELDS)
    for number, ((value, begin), name) in enumerate(zip(fields, names, strict=True)):
        alone = ["*"] * len(fields)
        alone[number] = value.upper()
        try:
            CronSim(" ".join(alone), datetime(2000, 1, 1))
        except CronSimError:
            return f"`{value}` is not valid as the {name} of a cron expression", begin, len(value)
    try:
        CronSim(text.upper(), datetime(2000, 1, 1))
    except CronSimError:  # fields that exclude each other
        return "no month has such a day", fields[-3][1], len(fields[-3][0])
    return None


@dataclass(frozen=True)
class Zone:
    """Name of an IANA time zone."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the name; it must be known on this machine."""
        if not isinstance(node.value, str):
            return wrong_type("the name of a time zone such as Europe/Berlin", node, reading)
        if (hint := zone_problem(node.value)) is None:
            return node.value
        message = f"`{node.value[:60]}` is not a time zone"
        reading.report.add("T111", message, node.location, hint)
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "examples": ["Europe/Berlin"]}


def zone_problem(name: str) -> str | None:
    """Return a hint if the name is not that of an IANA time zone, else None."""
    from zoneinfo import ZoneInfo, available_timezones  # lazy import, as above

    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError; a folder is an OSError
        known = available_timezones()
        return did_you_mean(name, known) or "use a name of the IANA database, for example Europe/Berlin"
    return None


@dataclass(frozen=True)
class Date:
    """Date as ISO 8601 text, or a YAML date."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the date."""
        try:
            if isinstance(node.value, str) and re.fullmatch(DATE, node.value):
                return date.fromisoformat(node.value).isoformat()
        except ValueError:
            pass
        reading.report.add(
            "T112", f"expected a date such as 2026-12-24, got {node.text or 'another value'}", node.location
        )
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{DATE}$", "examples": ["2026-12-24"]}


@dataclass(frozen=True)
class Moment:
    """Time with a zone."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the time."""
        try:
            if isinstance(node.value, str) and (moment := datetime.fromisoformat(node.value)).utcoffset() is not None:
                return moment.isoformat()
        except ValueError:
            pass
        message = f"expected a time with a zone such as 2026-01-31T18:00:00Z, got {node.text or 'another value'}"
        reading.report.add("T112", message, node.location)
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{TIME}$", "examples": ["2026-01-31T18:00:00Z"]}


DEFAULTS = ScheduleSpec()
SPEC_KEYS = (
    Key("cron", Cron(), "When it fires: minute, hour, day, month and weekday, or six fields with seconds in front."),
    Key("every", Duration(), "Time between fire times, in place of `cron`: `15m`, `6h`."),
    Key("timezone", Zone(), "IANA time zone of `cron` and `skip_dates`.", default=DEFAULTS.timezone),
    Key(
        "dst_gap",
        Choice(DST_GAP),
        "A local time that a daylight-saving change leaves out: fires right after the change, or not.",
        default=DEFAULTS.dst_gap,
    ),
    Key(
        "dst_overlap",
        Choice(DST_OVERLAP),
        "A local time that occurs twice: fires at the first, or at both. An hour of `*` or `*/n` fires at both unless "
        "this key is set, others at the first.",
    ),
    Key(
        "missed_fire",
        Choice(MISSED_FIRE),
        "Fire times that passed while no process ran: one task for all, a task for each (at most 100), or none.",
        default=DEFAULTS.missed_fire,
    ),
    Key(
        "overlap",
        Choice(OVERLAP),
        "A fire time while a task of the schedule is open: no task, a task after it, a task beside it, or a task after "
        "cancelling it.",
        default=DEFAULTS.overlap,
    ),
    Key("jitter", Duration(), "Delays all fires by a fixed time, up to this one, that differs between schedules."),
    Key("start", Moment(), "First possible fire time, with a zone; `every` counts from it."),
    Key("end", Moment(), "There are no fire times from this time on."),
    Key("skip_dates", ListOf(Date()), "Dates in the zone on which it does not fire."),
    Key("context", Free(), "The context of its tasks."),
    Key(
        "context_from",
        MapOf(Choice(FIRE_VALUES)),
        "Fields of the context that each fire fills in: `fire_time`, `fire_date`, `previous_fire_time`, `schedule`.",
    ),
)
SCHEDULE_NAME = Key("name", Text(NAME, NAME_RULE, max_length=MAX_NAME), "The schedule, unique in the template.", True)
OF_SCHEDULES = (
    ("interval rate fixed_rate frequency", "write `every: 15m`"),
    ("tz time_zone zone", "write `timezone: Europe/Berlin`"),
    ("catchup catch_up recover_missed_schedules misfire_policy", "write `missed_fire: once`, `all` or `skip`"),
    (
        "overlap_policy concurrency_policy max_active_runs",
        "write `overlap: skip`, `queue`, `allow` or `cancel_running`",
    ),
    ("start_date starts_at start_at", "write `start: 2026-01-31T18:00:00Z`"),
    ("end_date ends_at end_at", "write `end: 2026-01-31T18:00:00Z`"),
    ("input inputs args parameters params payload", "write `context: {...}`"),
)
SCHEDULE = Mapping("a schedule", (SCHEDULE_NAME, *SPEC_KEYS), foreign=OF_SCHEDULES)
SPEC = Mapping("a schedule", SPEC_KEYS, foreign=OF_SCHEDULES)


def check_schedules(document: AnyMapping[str, Any], reading: DocumentReading) -> None:
    """Check what the keys of a schedule cannot check alone, and that no two schedules have one name."""
    first: dict[str, int] = {}
    for number, values in enumerate(document.get("schedules", ())):
        if not isinstance(values, dict):
            continue
        path = ("schedules", number)
        _check(values, path, reading)
        if (name := values.get("name")) is None:
            continue
        place = reading.value(*path, "name")
        if name in first:
            hint = f"the first is in line {first[name]}"
            reading.report.add("T113", f"a second schedule `{name}`", place, hint)
        first.setdefault(name, place.line)


def _check(values: AnyMapping[str, Any], path: Path, reading: DocumentReading) -> None:
    has_cron, has_every = reading.has(*path, "cron"), reading.has(*path, "every")
    if has_cron and has_every:
        place = reading.key(*path, "every")
        reading.report.add("T062", "`cron` and `every` exclude each other", place, "write one of them")
    elif not has_cron and not has_every:
        message = "`cron` or `every` is missing in a schedule"
        reading.report.add("T021", message, reading.value(*path), 'add one, for example `cron: "0 2 * * *"`')
    every, jitter = values.get("every"), values.get("jitter", 0)
    if every is not None and (every < 1 or every != int(every)):
        message = f"expected whole seconds, at least 1s, got {duration_text(every)}"
        reading.report.add("T060", message, reading.value(*path, "every"))
    elif every is not None and jitter >= every:
        hint = f"at most less than {duration_text(every)}"
        reading.report.add("T060", "`jitter` is not shorter than `every`", reading.value(*path, "jitter"), hint)
    if "start" in values and "end" in values:
        start, end = (datetime.fromisoformat(values[key]) for key in ("start", "end"))
        if start >= end:
            reading.report.add("T114", "`end` is not after `start`: it never fires", reading.value(*path, "end"))
    both = sorted(set(values.get("context", ())) & set(values.get("context_from", ())))
    if both:
        message = f"{listed(both)} is in `context` as well as in `context_from`"
        reading.report.add("T062", message, reading.key(*path, "context_from"), "write it in one of them")


SAMPLE = {
    "fire_time": "2026-01-31T18:00:00+01:00",
    "fire_date": "2026-01-31",
    "previous_fire_time": None,
    "schedule": "nightly",
}
"""Values of a first fire, which has none before it."""


def context_problems(plan: Plan, spec: ScheduleSpec) -> list[SchemaMismatch]:
    """Return the mismatches of a schedule's context with the template's `input_schema`."""
    filled = {field: SAMPLE[value] for field, value in spec.context_from.items()}
    return check_input(plan, {**spec.context, **filled})


def check_contexts(plan: Plan, reading: DocumentReading) -> None:
    """Check that the context of each schedule fits the `input_schema`: else no fire could submit a task."""
    for number, schedule in enumerate(plan.schedules):
        for mismatch in context_problems(plan, ScheduleSpec.parse(schedule["spec"])):
            name = "context" if reading.has("schedules", number, "context") else "context_from"
            message = f"the context of `{schedule['name']}` does not fit the `input_schema`: {mismatch}"
            hint = "the first fire has no `previous_fire_time`: allow null" if "None" in mismatch.message else None
            reading.report.add("T115", message, reading.key("schedules", number, name), hint)


def spec_of(values: AnyMapping[str, Any]) -> ScheduleSpec:
    """Return the schedule of checked keys."""
    renamed = {"every": "every_seconds", "jitter": "jitter_seconds"}
    fields = {renamed.get(key, key): value for key, value in values.items() if key != "name"}
    if "every_seconds" in fields:
        fields["every_seconds"] = int(fields["every_seconds"])
    return ScheduleSpec.parse(fields)


def declared_schedules(document: AnyMapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the schedules of a checked document as they are stored in its plan."""
    return tuple({"name": values["name"], "spec": spec_of(values).stored()} for values in document.get("schedules", ()))


def parse_schedule(keys: AnyMapping[str, Any]) -> tuple[ScheduleSpec | None, list[str]]:
    """Return the schedule of keys that come from a request or a command, or the problems with them.

    They are read like those of a template, by the same rules.
    """
    report = Report("<schedule>")
    values: Any = None
    for document in read_documents(json.dumps(keys, ensure_ascii=False), report):
        reading = DocumentReading(report, document.node.location)
        values = SPEC.read(document.node, (), reading)
        if isinstance(values, dict):
            _check(values, (), reading)
    problems = [f"{d.message}{f' ({d.hint})' if d.hint else ''}" for d in report.diagnostics()]
    return (None if report.errors or not isinstance(values, dict) else spec_of(values)), problems
