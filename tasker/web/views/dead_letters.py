"""Dead letters as pages show them: why they are there, what may be asked for, how groups have grown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from shlex import quote
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.services.dead_letters.entries import known
from tasker.services.dead_letters.records import REASONS, STATUSES, ReasonStats
from tasker.services.dead_letters.replays import RATES, FailureSelection, Replay, ReplayPlan
from tasker.services.wording import counted, duration, number
from tasker.web.views.address import AddressWords
from tasker.web.views.overview import Figure
from tasker.web.views.task_search import SPANS, moment_of

MEANINGS = {
    "max_retries_exceeded": "a step used up its attempts",
    "permanent_failure": "a step failed in a way that no retry changes",
    "staleness_timeout": "nothing moved it for too long",
    "worker_unavailable": "no worker was there for it",
    "dependency_cycle_detected": "its steps wait for each other",
    "manual_dlq": "a person put it here",
}
REMEDIES = {
    "max_retries_exceeded": "Mend the cause that the failure tells; then run the steps again, or take them as done.",
    "permanent_failure": "Correct the input or the handler that the failure names; then run the steps again.",
    "staleness_timeout": "See why its steps did not move, then let them run again. The limits are in the template.",
    "worker_unavailable": "Start a worker that has its handlers; it goes on by itself, then close the entry.",
    "dependency_cycle_detected": "Correct the template, and run it again as a new task.",
    "manual_dlq": "See the notes of who put it here.",
}
MOST_TASKS = 100_000


@dataclass(frozen=True, slots=True)
class EntrySearch(AddressWords):
    """Which entries a list shows, in the words of its address."""

    status: str = ""
    reason: str = ""
    namespace: str = ""
    template: str = ""
    fingerprint: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> EntrySearch:
        """From the query of an address. Raises `UsageError` for a status or reason that there is not."""
        found = cls.read(given)
        known(found.status or None, STATUSES, "status")
        known(found.reason or None, REASONS, "reason")
        return found

    @property
    def filters(self) -> dict[str, Any]:
        """For the service."""
        return {each.name: getattr(self, each.name) or None for each in fields(self)}

    @property
    def command(self) -> str:
        """The command that lists the same."""
        return " ".join(["tasker dlq list", *(f"--{name} {quote(value)}" for name, value in self.words.items())])


@dataclass(frozen=True, slots=True)
class ReplaySearch(AddressWords):
    """Which pending entries a replay is about, in the words of its address; `all` says that all are meant."""

    fingerprint: str = ""
    namespace: str = ""
    template: str = ""
    reason: str = ""
    since: str = ""
    all: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ReplaySearch:
        """From the query of an address or the fields of a form. Raises `UsageError`."""
        found = cls.read(given)
        known(found.reason or None, REASONS, "reason")
        return found

    @property
    def is_given(self) -> bool:
        """Whether it says which entries are meant."""
        return bool(self.words)

    def group(self, now: datetime) -> FailureSelection:
        """As the service knows it. Raises `UsageError` for a time that is none."""
        since = (now - timedelta(seconds=SPANS[self.since])) if self.since in SPANS else None
        return FailureSelection(
            fingerprint=self.fingerprint or None,
            namespace=self.namespace or None,
            template=self.template or None,
            reason=self.reason or None,
            since=since or (moment_of(self.since) if self.since else None),
        )

    def command(self, rate: float) -> str:
        """The command that begins the same."""
        options = [
            "--all" if name == "all" else f"--{name} {quote(value)}"
            for name, value in self.words.items()
            if name != "all" or len(self.words) == 1
        ]
        return " ".join(["tasker dlq replay", *options, f"--rate {rate:g}/s"])


def rate_of(text: str) -> float:
    """Tasks per second. Raises `UsageError`."""
    try:
        found = float(text or 10)
    except ValueError:
        found = float("nan")
    if not RATES[0] <= found <= RATES[1]:
        raise UsageError(f"{text!r} tasks per second is no rate", hint=f"{RATES[0]:g} to {RATES[1]:g}")
    return found


def figures(stats: Sequence[ReasonStats]) -> Iterable[Figure]:
    """What waits, by reason, and how long it took to close those that are closed."""
    pending = sum(each.pending for each in stats)
    yield Figure("to look into", number(pending), f"{number(sum(each.total_entries for each in stats))} in all")
    for each in stats:
        minutes = each.avg_resolution_time_minutes
        closed = "" if minutes is None else f"closed after {duration(60_000 * minutes)} on average"
        yield Figure(meaning(each.dlq_reason), number(each.pending), closed)


def meaning(reason: str) -> str:
    """Return in words why an entry is on the list."""
    return MEANINGS.get(reason, reason)


def planned(plan: ReplayPlan, rate: float) -> str:
    """What a replay does, in words."""
    took = duration(1000 * plan.tasks / rate)
    once = f"; {counted(plan.once, 'step')} left alone, which may run only once" if plan.once else ""
    return f"{counted(plan.steps, 'step')} of {counted(plan.tasks, 'task')} run again, in about {took}{once}."


@dataclass(frozen=True, slots=True)
class ReplayCourse:
    """How far a replay is."""

    replay: Replay

    @property
    def dealt_with(self) -> int:
        """Tasks that are behind it."""
        return self.replay.replayed + self.replay.skipped

    @property
    def left(self) -> int:
        """Tasks to come."""
        return self.replay.total - self.dealt_with

    @property
    def runs(self) -> bool:
        """True while it is on its way."""
        return self.replay.state == "running"

    @property
    def ended(self) -> bool:
        """True when nothing more of it happens."""
        return self.replay.finished_at is not None

    @property
    def time_left(self) -> str:
        """How long it takes at its rate."""
        return duration(1000 * self.left / self.replay.rate_per_second)

    @property
    def about(self) -> str:
        """Which entries it is about."""
        names = ("fingerprint", "namespace", "template", "reason", "since")
        given = [f"{name} {value}" for name in names if (value := self.replay.filter.get(name))]
        return ", ".join(given) or "all pending entries"


def failing_steps(snapshot: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The steps that an entry has kept, those with a failure first."""
    found = list((snapshot or {}).get("workflow_steps") or [])
    return sorted(found, key=lambda step: not step.get("last_error"))


def entry_commands(entry: str) -> dict[str, str]:
    """What does the same from a shell."""
    return {
        "show": f"tasker dlq show {entry}",
        "keep": f"tasker dlq update {entry} --status manually_resolved --notes '...'",
        "retry": f"tasker dlq retry {entry} --reason '...'",
    }
