"""Which tasks a list shows, as a query that says no more than was asked: so each filter finds its own index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, TypedDict

from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.db.session import Rows
from tasker.lifecycle.machines.task import TERMINAL, TaskState
from tasker.lifecycle.storable import encode

OF_DETAILS = ("initiator", "source_system", "correlation_id", "tags")
CLAUSES = ("created_after", "created_before", "fingerprint", *OF_DETAILS)
"""The filters that are a part of the condition each."""
LOOKED_INTO = 20_000
"""Inputs are not indexed, which would cost every submission: so many of the newest that match all else are read."""


class MoreFilters(TypedDict, total=False):
    """Of a list of tasks, what is seldom asked for; `until` is the time before which they were created."""

    version: str | None
    initiator: str | None
    source_system: str | None
    correlation_id: str | None
    fingerprint: str | None
    until: datetime | None
    open: bool
    oldest_first: bool


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks are meant: all that is given is true of them. `tags`: they have all of these.

    `created_before` is not among the times, `created_after` is.
    """

    namespace: str | None = None
    status: str | None = None
    template: str | None = None
    version: str | None = None
    initiator: str | None = None
    source_system: str | None = None
    tags: Sequence[str] = ()
    correlation_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    fingerprint: str | None = None
    """Of a failure that made them dead letters."""
    context: Mapping[str, Any] | None = None
    """Inputs that contain this, of the newest `LOOKED_INTO` tasks of which all else is true."""
    namespaces: Sequence[str] | None = None
    """Only tasks of these, whatever `namespace` says; None: of all."""
    open: bool = False
    """Only tasks that have not ended."""

    @property
    def names_templates(self) -> bool:
        """True when only tasks of some templates are meant."""
        return any(each is not None for each in (self.namespace, self.template, self.version, self.namespaces))

    def conditions(self) -> list[str]:
        """The names of the parts of the condition; the state comes with the index of those that are in such a state."""
        given = [name for name in CLAUSES if getattr(self, name)]
        if self.open and self.status is None:
            given.append("open")
        if self.status is None:
            return given
        if self.status == TaskState.COMPLETE:
            return [*given, "status"]
        return [*given, "status", "troubled" if self.status in TERMINAL else "open"]


class TaskLists:
    """Finds the tasks that a filter means. Templates are named by identifiers: of these the planner has statistics."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def page(
        self, which: TaskFilter, *, limit: int, offset: int = 0, after: str | None = None, oldest_first: bool = False
    ) -> list[str]:
        """The identifiers of one page, by their time of creation; those behind the task `after`."""
        order, beyond = ("asc", ">") if oldest_first else ("desc", "<")
        more = {"after": after, "limit": limit, "offset": offset, "most": LOOKED_INTO}
        name = "page" if which.context is None else "page_of_inputs"
        return [row[0] for row in await self._ask(name, which, more, order=order, beyond=beyond)]

    async def count(self, which: TaskFilter, most: int) -> int:
        """How many there are; at most so many are counted."""
        return int(sum(row[0] for row in await self._ask("count", which, {"most": most})))

    async def _ask(self, name: str, which: TaskFilter, more: Mapping[str, Any], **words: str) -> Rows:
        context = None if which.context is None else encode(dict(which.context)).text
        params = {**asdict(which), "tags": list(which.tags), "context": context, **more}
        names = which.conditions()
        if which.names_templates:
            ((params["named_tasks"],),) = await self._connection.execute(query("listing", "named_tasks"), params)
            if not params["named_tasks"]:
                return []
            names.append("template")
        text = query("listing", name).format(matching=_matching(names), **words)
        return await self._connection.execute(text, params)


def _matching(names: Sequence[str]) -> str:
    joined = [query("listing", "details")] if any(name in OF_DETAILS for name in names) else []
    clauses = [f"and {query('listing', name)}" for name in names]
    return "\n".join([query("listing", "tasks"), *joined, "where true", *clauses])
