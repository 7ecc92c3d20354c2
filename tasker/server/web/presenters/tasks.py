"""Filters of a task list, read from the address of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Self
from urllib.parse import urlencode

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.services.tasks.lists import TaskFilter, context_of
from tasker.services.tasks.read import checked
from tasker.views.tasks import Task


@dataclass(frozen=True, slots=True)
class AddressWords:
    """Filters as texts, one per field; empty if not given."""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Return the filters in the query of an address or the fields of a form, without surrounding spaces."""
        return cls(**{field.name: given.get(field.name, "").strip() for field in fields(cls)})

    @property
    def words(self) -> dict[str, str]:
        """Given filters, for an address."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


SPANS = {"15m": 900, "1h": 3600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000}
"""Spans of time in seconds."""
OPEN = "open"
"""Value of the status filter that selects tasks that have not ended."""


OPTIONS = {
    "namespace": "namespace",
    "template": "template",
    "version": "version",
    "initiator": "initiator",
    "source": "source-system",
    "tenant": "tenant",
    "outcome": "outcome",
    "waiting": "waiting-for",
    "correlation": "correlation-id",
    "fingerprint": "fingerprint",
    "field": "field",
}
"""Options of `tasker task list` by the words of an address."""


@dataclass(frozen=True, slots=True)
class Search(AddressWords):
    """Filters of a task list, as given in the address."""

    namespace: str = ""
    template: str = ""
    version: str = ""
    status: str = ""
    tag: str = ""
    initiator: str = ""
    source: str = ""
    tenant: str = ""
    outcome: str = ""
    waiting: str = ""
    correlation: str = ""
    fingerprint: str = ""
    field: str = ""
    within: str = ""
    since: str = ""
    until: str = ""
    sort: str = ""

    @property
    def address(self) -> str:
        """Filters as the query of an address."""
        return urlencode(self.words)

    @property
    def oldest_first(self) -> bool:
        return self.sort == "oldest"

    @property
    def order(self) -> str:
        """Sort order as cursors name it."""
        return "created_at" if self.oldest_first else "-created_at"

    def filter(self, namespaces: list[str] | None, now: datetime, tenants: list[str] | None = None) -> TaskFilter:
        """Return the filter of the tasks in these namespaces and of these tenants. Raises `UsageError` for invalid
        filters."""
        return TaskFilter(
            namespace=self.namespace or None,
            status=self.status if self.status and self.status != OPEN else None,
            template=self.template or None,
            version=self.version or None,
            initiator=self.initiator or None,
            source_system=self.source or None,
            tenant=self.tenant or None,
            outcome=self.outcome or None,
            waiting_for=self.waiting or None,
            tags=self.tag.split(),
            correlation_id=checked(self.correlation) if self.correlation else None,
            created_after=self._after(now),
            created_before=moment_of(self.until) if self.until else None,
            fingerprint=self.fingerprint or None,
            context=context_of(self.field) if self.field else None,
            namespaces=namespaces,
            tenants=tenants,
            open=self.status == OPEN,
        )

    def _after(self, now: datetime) -> datetime | None:
        if self.since:
            return moment_of(self.since)
        if not self.within:
            return None
        if self.within not in SPANS:
            raise UsageError(f"{self.within!r} is not a valid time span", hint=f"one of {', '.join(SPANS)}")
        return now - timedelta(seconds=SPANS[self.within])

    @property
    def command(self) -> str:
        """Command that lists the same tasks."""
        return " ".join(["tasker task list", *self._options()])

    def _options(self) -> Iterator[str]:
        for name, option in OPTIONS.items():
            if value := getattr(self, name):
                yield f"--{option} {quote(value)}"
        if self.status:
            yield "--open" if self.status == OPEN else f"--status {quote(self.status)}"
        yield from (f"--tag {quote(tag)}" for tag in self.tag.split())
        if self.since or self.within:
            yield f"--since {quote(_written(self.since) if self.since else self.within)}"
        if self.until:
            yield f"--until {quote(_written(self.until))}"
        if self.oldest_first:
            yield "--oldest-first"


@dataclass(frozen=True, slots=True)
class ListPage:
    """Page of tasks with the cursors of the previous and the next page; None if there is none.

    `looked_into`: number of tasks whose inputs were searched; 0: all. `searched`: the page was searched among so many
    tasks, and there are others; 0: it needed no more."""

    tasks: Sequence[Task]
    before: str | None
    behind: str | None
    looked_into: int = 0
    searched: int = 0


def moment_of(text: str) -> datetime:
    """Return a time, in UTC unless it has a time zone. Raises `UsageError` if it is invalid."""
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a valid time", hint="such as 2026-01-31T18:00") from None
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)


def _written(text: str) -> str:
    """Return the time with a time zone for the command; an invalid time stays as it is."""
    try:
        return f"{moment_of(text).astimezone(UTC):%Y-%m-%d %H:%M:%S}+00:00"
    except (UsageError, OverflowError):
        return text
