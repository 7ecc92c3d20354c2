"""Result of `tasker.explain_v1` for a task, with sentences; for programs, the command line and the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.services.explain.reasons import NOBODY_AT_WORK, REASONS, filled
from tasker.services.explain.wording import again_command, words_of


@dataclass(frozen=True, slots=True)
class Explained:
    """Group of `count` steps that do not run for the same reason.

    `steps` are the first by name, `of` their template steps, and `values` fill the sentence. `needs_somebody` means
    that nothing changes without an operator.
    """

    reason: str
    count: int
    steps: Sequence[str]
    of: Sequence[str]
    since: datetime | None
    values: Mapping[str, Any]
    needs_somebody: bool
    task_uuid: str
    at: datetime
    alive: int

    def sentence(self, zone: tzinfo | None = None) -> str:
        """Return why the steps do not run, in one sentence. Times are in `zone`, or in the local one if it is None."""
        return filled(REASONS[self.reason].sentence, words_of(self.values, self.at, zone))

    def remedy(self, database: str = "") -> str:
        """Return what would change it. `database` are the options that select the database in a command."""
        reason = REASONS[self.reason]
        if reason.by_any_process and not self.alive:
            return NOBODY_AT_WORK
        again = again_command(self.task_uuid, self.steps, self.count) if self.steps else ""
        given = {"task": self.task_uuid, "again": again, "db": database}
        return filled(reason.remedy, words_of(self.values, self.at, None) | given)

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


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of a task's progress: `reasons`, those that need an operator first, and the number of `more`.

    Without reasons there is nothing left to run. `alive` is the number of live processes, in any namespace.
    """

    task_uuid: str
    namespace: str
    template: str
    status: str
    finished: bool
    at: datetime
    alive: int
    reasons: Sequence[Explained]
    more: int

    @property
    def needs_somebody(self) -> bool:
        """True if any reason needs an operator."""
        return any(each.needs_somebody for each in self.reasons)

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
            "reasons": [each.to_dict(zone) for each in self.reasons],
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
