"""Dead letters as pages show them: their reasons, the possible actions, and the growth of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from shlex import quote
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.operations.dead_letters import RATES, FailureSelection
from tasker.server.web.presenters.overview import Figure
from tasker.server.web.presenters.tasks import SPANS, AddressWords, moment_of
from tasker.services.operators.dead_letters import known
from tasker.services.wording import counted, duration, number
from tasker.views.dead_letters import REASONS, STATUSES, ReasonStats, Replay, ReplayPlan

MEANINGS = {
    "max_retries_exceeded": "a step used up its attempts",
    "permanent_failure": "a step failed in a way that no retry changes",
    "staleness_timeout": "it made no progress for too long",
    "worker_unavailable": "no worker served it",
    "dependency_cycle_detected": "its steps are deadlocked",
    "manual_dlq": "added by an operator",
    "compensation_failed": "an effect could not be undone",
}
REMEDIES = {
    "max_retries_exceeded": "Fix the cause of the failure; then retry the steps or mark them as done.",
    "permanent_failure": "Correct the input or the handler that the failure names; then run the steps again.",
    "staleness_timeout": "See why its steps did not move, then let them run again. The limits are in the template.",
    "worker_unavailable": "Start a worker that has its handlers; the task continues, then close the entry.",
    "dependency_cycle_detected": "Correct the template, and run it again as a new task.",
    "manual_dlq": "See the notes of the entry.",
    "compensation_failed": "Undo the effect by hand and complete the compensation, or let it run again.",
}


@dataclass(frozen=True, slots=True)
class EntrySearch(AddressWords):
    """Filter of a list of entries, in the words of its address."""

    status: str = ""
    reason: str = ""
    namespace: str = ""
    template: str = ""
    fingerprint: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> EntrySearch:
        """Return the filter in the query of an address. Raises `UsageError` for an unknown status or reason."""
        search = cls.read(given)
        known(search.status or None, STATUSES, "status")
        known(search.reason or None, REASONS, "reason")
        return search

    @property
    def filters(self) -> dict[str, Any]:
        """Filters as the service takes them."""
        return {field.name: getattr(self, field.name) or None for field in fields(self)}

    @property
    def command(self) -> str:
        """Command that lists the same entries."""
        return " ".join(["tasker dlq list", *(f"--{name} {quote(value)}" for name, value in self.words.items())])


@dataclass(frozen=True, slots=True)
class ReplaySearch(AddressWords):
    """Selection of pending entries for a replay, in the words of its address; `all` selects every entry."""

    fingerprint: str = ""
    namespace: str = ""
    template: str = ""
    reason: str = ""
    since: str = ""
    all: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ReplaySearch:
        """Return the selection in the query of an address or the fields of a form.

        Raises `UsageError` for an unknown reason.
        """
        search = cls.read(given)
        known(search.reason or None, REASONS, "reason")
        return search

    @property
    def is_given(self) -> bool:
        """True if the selection names any entries."""
        return bool(self.words)

    def group(self, now: datetime) -> FailureSelection:
        """Return the selection as the service takes it. Raises `UsageError` for an invalid time."""
        since = (now - timedelta(seconds=SPANS[self.since])) if self.since in SPANS else None
        return FailureSelection(
            fingerprint=self.fingerprint or None,
            namespace=self.namespace or None,
            template=self.template or None,
            reason=self.reason or None,
            since=since or (moment_of(self.since) if self.since else None),
        )

    def command(self, rate: float) -> str:
        """Return the command that starts the same replay."""
        options = [
            "--all" if name == "all" else f"--{name} {quote(value)}"
            for name, value in self.words.items()
            if name != "all" or len(self.words) == 1
        ]
        return " ".join(["tasker dlq replay", *options, f"--rate {rate:g}/s"])


def rate_of(text: str) -> float:
    """Return the rate in tasks per second. Raises `UsageError` if it is invalid."""
    try:
        rate = float(text or 10)
    except ValueError:
        rate = float("nan")
    if not RATES[0] <= rate <= RATES[1]:
        raise UsageError(f"{text!r} is not a valid rate in tasks per second", hint=f"{RATES[0]:g} to {RATES[1]:g}")
    return rate


def figures(stats: Sequence[ReasonStats]) -> Iterable[Figure]:
    """Yield the number of pending entries, in total and by reason, with the average time to close them."""
    pending = sum(row.pending for row in stats)
    yield Figure("pending", number(pending), f"{number(sum(row.total_entries for row in stats))} in all")
    for reason_stats in stats:
        minutes = reason_stats.avg_resolution_time_minutes
        closed = "" if minutes is None else f"closed after {duration(60_000 * minutes)} on average"
        yield Figure(meaning(reason_stats.dlq_reason), number(reason_stats.pending), closed)


def meaning(reason: str) -> str:
    """Return the reason of an entry in words."""
    return MEANINGS.get(reason, reason)


def planned(plan: ReplayPlan, rate: float) -> str:
    """Return a sentence that describes the effect of a replay."""
    took = duration(1000 * plan.tasks / rate)
    once = f"; {counted(plan.once, 'step')} left alone, which may run only once" if plan.once else ""
    return f"{counted(plan.steps, 'step')} of {counted(plan.tasks, 'task')} run again, in about {took}{once}."


@dataclass(frozen=True, slots=True)
class ReplayCourse:
    """Progress of a replay."""

    replay: Replay

    @property
    def dealt_with(self) -> int:
        """Number of processed tasks."""
        return self.replay.replayed + self.replay.skipped

    @property
    def left(self) -> int:
        return self.replay.total - self.dealt_with

    @property
    def runs(self) -> bool:
        return self.replay.state == "running"

    @property
    def ended(self) -> bool:
        return self.replay.finished_at is not None

    @property
    def time_left(self) -> str:
        """Remaining time at the replay's rate."""
        return duration(1000 * self.left / self.replay.rate_per_second)

    @property
    def about(self) -> str:
        """Selection of the replay in words."""
        names = ("fingerprint", "namespace", "template", "reason", "since")
        criteria = [f"{name} {value}" for name in names if (value := self.replay.filter.get(name))]
        return ", ".join(criteria) or "all pending entries"


def failing_steps(snapshot: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return the steps in the snapshot of an entry, those with a failure first."""
    steps = list((snapshot or {}).get("workflow_steps") or [])
    return sorted(steps, key=lambda step: not step.get("last_error"))


def entry_commands(entry: str) -> dict[str, str]:
    """Return the commands that do the same as the entry's page."""
    return {
        "show": f"tasker dlq show {entry}",
        "keep": f"tasker dlq update {entry} --status manually_resolved --notes '...'",
        "retry": f"tasker dlq retry {entry} --reason '...'",
    }
