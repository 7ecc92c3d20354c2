"""Filtered lists of tasks, and lists that are saved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypedDict

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.session import Rows
from tasker.db.sql_files import query
from tasker.engine.identity import key_identity, plan_key
from tasker.engine.states.task import TERMINAL, TaskState
from tasker.errors import UsageError
from tasker.json_values import encode, require_findable
from tasker.services.audit import audited
from tasker.template.diagnostics import did_you_mean, listed

MOST_VIEWS, LONGEST_NAME, LONGEST_ADDRESS = 50, 60, 2000


@dataclass(frozen=True, slots=True)
class SavedView:
    """Saved view: `address` has the filters as the query string of a URL."""

    name: str
    address: str
    saved_by: str
    saved_at: datetime


class SavedViews:
    """Saved views in `tasker.saved_views`. Methods raise `DatabaseError`."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def list(self) -> Sequence[SavedView]:
        """Return all views, by name."""
        return [SavedView(*row) for row in await self._connection.execute(query("operators", "views"))]

    @audited("App.saved_views.save", "_connection")
    async def save(self, name: str, address: str, *, actor: str) -> None:
        """Save these filters under a name, replacing an existing view. Raises `UsageError`."""
        if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
            raise UsageError(f"{name!r:.80} is not a valid view name", hint=f"1 to {LONGEST_NAME} printable characters")
        if len(address) > LONGEST_ADDRESS:
            raise UsageError("these filters are too long to save", hint="choose fewer")
        params = {"name": name, "address": address, "by": actor, "most": MOST_VIEWS}
        if not await self._connection.execute(query("operators", "save_view"), params):
            raise UsageError(f"there are {MOST_VIEWS} views already", hint="remove one that is no longer needed")

    @audited("App.saved_views.remove", "_connection")
    async def remove(self, name: str, *, actor: str | None = None) -> bool:
        """Remove a view; return False if there is none of this name."""
        return bool(await self._connection.execute(query("operators", "remove_view"), {"name": name}))


INPUTS = "inputs"
STATES = tuple(state.value for state in TaskState)
WAITING_FOR = ("time", "event", "person", "task")
OUTCOMES = ("partial", "compensating", "compensated", "compensation_failed")
OF_DETAILS = ("initiator", "source_system", "correlation_id", "idempotency_key", "tags", INPUTS)
CLAUSES = (
    "created_after",
    "created_before",
    "fingerprint",
    "tenant",
    "outcome",
    "tenants",
    "waiting_for",
    "initiator",
    "source_system",
    "correlation_id",
    "idempotency_key",
    "tags",
)
"""Filters that are each a part of the condition."""
LOOKED_INTO = 20_000
"""Number of the newest otherwise matching tasks whose inputs are read if inputs are not indexed (`tasker db
index-inputs`)."""

FEW = 1_000
"""A value that at most this many tasks share is rare: these tasks are read, regardless of the statistics."""
NEAR = 2_000
"""Number of the newest tasks that are searched first for a page of a common value."""
COMMON = ("tags", "initiator", "source_system")
"""Fields whose values many tasks may share. The state is in another table, so no index covers both."""


class ListFilters(TypedDict, total=False):
    """Less common filters of a task list.

    `until` is the time before which the tasks were created; `field` is a condition on their input, such as `order.id =
    7`.
    """

    version: str | None
    initiator: str | None
    source_system: str | None
    tenant: str | None
    outcome: str | None
    waiting_for: str | None
    correlation_id: str | None
    idempotency_key: str | None
    fingerprint: str | None
    field: str | None
    until: datetime | None
    open: bool
    oldest_first: bool


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Filter of tasks; all given conditions must hold. `tags`: a task must have all of them.

    `created_after` is inclusive, `created_before` is exclusive. Raises `UsageError` for an unknown status.
    """

    namespace: str | None = None
    status: str | None = None
    template: str | None = None
    version: str | None = None
    initiator: str | None = None
    source_system: str | None = None
    tenant: str | None = None
    outcome: str | None = None
    """One of `OUTCOMES`."""
    waiting_for: str | None = None
    """What a step of the task waits for without a worker: one of `WAITING_FOR`."""
    tags: Sequence[str] = ()
    correlation_id: str | None = None
    idempotency_key: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    fingerprint: str | None = None
    """Fingerprint of a failure that made the tasks dead letters."""
    context: Mapping[str, Any] | None = None
    """Values that the input contains; if inputs are not indexed, only the newest `LOOKED_INTO` tasks are searched that
    match all other conditions."""
    namespaces: Sequence[str] | None = None
    """Permitted namespaces, applied in addition to `namespace`; None permits all."""
    tenants: Sequence[str] | None = None
    """Permitted tenants, applied in addition to `tenant`; None permits all, and tasks without a tenant."""
    open: bool = False
    """True to list only tasks that have not ended."""

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATES:
            hint = did_you_mean(self.status, STATES) or f"expected one of {listed(STATES)}"
            raise UsageError(f"status: unknown state {self.status!r}", hint=hint)
        if self.outcome is not None and self.outcome not in OUTCOMES:
            hint = f"expected one of {listed(OUTCOMES)}"
            raise UsageError(f"outcome: unknown outcome {self.outcome!r}", hint=hint)
        if self.waiting_for is not None and self.waiting_for not in WAITING_FOR:
            hint = f"expected one of {listed(WAITING_FOR)}"
            raise UsageError(f"waiting_for: unknown kind of wait {self.waiting_for!r}", hint=hint)

    @property
    def names_templates(self) -> bool:
        """True if the filter selects tasks of certain templates only."""
        return any(value is not None for value in (self.namespace, self.template, self.version, self.namespaces))

    @property
    def shares_with_others(self) -> bool:
        """True when it has a tag, or an initiator or source beside something else: no index has all of it."""
        words = [name for name in COMMON if getattr(self, name)]
        others = self.names_templates or self.conditions(common=False)
        return self.context is None and bool(self.tags or (words and others))

    def conditions(self, *, common: bool = True) -> list[str]:
        """The names of the parts of the condition; the state comes with the index of those that are in such a state.

        Without `common` those of `COMMON` are left out.
        """
        clauses = [name for name in CLAUSES if getattr(self, name) and (common or name not in COMMON)]
        if self.tenants is not None and "tenants" not in clauses:
            clauses.append("tenants")  # an empty set permits no tenant
        if self.open and self.status is None:
            clauses.append("open")
        if self.status is None:
            return clauses
        if self.status == TaskState.COMPLETE:
            return [*clauses, "status"]
        return [*clauses, "trouble"] if self.status in TERMINAL else [*clauses, "status", "open"]


@dataclass(frozen=True, slots=True)
class Part:
    """A page of identifiers, which may not be full: then matching tasks may lie behind the task `read_to`."""

    tasks: Sequence[str]
    read_to: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """A number of tasks; `at_least`: there may be more."""

    number: int
    at_least: bool = False


class TaskLists:
    """Search for the tasks that match a filter.

    Templates are passed as ids, because the planner has statistics for these.
    """

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def page(
        self, which: TaskFilter, *, limit: int, offset: int = 0, after: str | None = None, oldest_first: bool = False
    ) -> list[str]:
        """The identifiers of one page, by their time of creation; those behind the task `after`.

        Goes on until the page is full or there are no more tasks, part by part.
        """
        if not which.shares_with_others:
            return await self._page(which, limit=limit, offset=offset, after=after, oldest_first=oldest_first)
        tasks: list[str] = []
        while True:
            most = offset + limit - len(tasks)
            part = await self.part(which, limit=most, after=after, oldest_first=oldest_first)
            tasks += part.tasks
            after = part.read_to
            if after is None or len(part.tasks) == most:
                return tasks[offset:]

    async def part(
        self, which: TaskFilter, *, limit: int, offset: int = 0, after: str | None = None, oldest_first: bool = False
    ) -> Part:
        """The same, but it may end before the page is full: at most `LOOKED_INTO` tasks are read for what is common."""
        paging: dict[str, Any] = {"limit": limit, "offset": offset, "after": after}
        if not which.shares_with_others:
            return Part(await self._page(which, **paging, oldest_first=oldest_first))
        words = _order(oldest_first)
        for few, near in ((FEW, NEAR), (LOOKED_INTO, LOOKED_INTO)):
            number, rare = await self._among_common("page_of_common", which, {**paging, "few": few}, **words)
            if number <= few:
                return Part(list(rare))
            names = which.conditions(common=False)
            rows = await self._ask(
                "page_of_newest", names, which, {**paging, "near": near}, common=_common(which), **words
            )
            newest = Part(*rows[0]) if rows else Part([])
            if newest.read_to is None or len(newest.tasks) == limit:
                break
        return newest

    async def _page(
        self, which: TaskFilter, *, limit: int, offset: int, after: str | None, oldest_first: bool
    ) -> list[str]:
        more = {"after": after, "limit": limit, "offset": offset, "most": LOOKED_INTO}
        indexed = which.context is not None and await self.inputs_are_indexed()
        name = "page" if which.context is None or indexed else "page_of_inputs"
        names = [*which.conditions(), *([INPUTS] if indexed else [])]
        return [row[0] for row in await self._ask(name, names, which, more, **_order(oldest_first))]

    async def _among_common(
        self, name: str, which: TaskFilter, more: Mapping[str, Any], **words: str
    ) -> tuple[int, Any]:
        """Return how many tasks have what is common, at most `few` + 1, and what the query finds among these.

        The planner does not know the frequency of a rare tag: it would scan all tasks to find none.
        """
        common = query("listing", "common").format(common=_common(which))
        rows = await self._ask(name, which.conditions(common=False), which, more, of_common=common, **words)
        return (rows[0][0], rows[0][1]) if rows else (0, ())

    async def count(self, which: TaskFilter, most: int) -> int:
        """Return the number of matching tasks, counted to `most`."""
        return (await self.counted(which, most)).number

    async def counted(self, which: TaskFilter, most: int) -> Count:
        """The same, and whether there may be more: of a common tag only the newest `most` that match all else are."""
        if which.shares_with_others:
            number, matching = await self._among_common("count_of_common", which, {"most": most, "few": FEW})
            if number <= FEW:
                return Count(int(matching or 0))
            names = which.conditions(common=False)
            words = {"common": _common(which), **_order(oldest_first=False)}
            rows = await self._ask("count_of_newest", names, which, {"near": most}, **words)
            return Count(*rows[0]) if rows else Count(0)
        number = int(sum(row[0] for row in await self._ask("count", which.conditions(), which, {"most": most})))
        return Count(number, at_least=number >= most)

    async def inputs_are_indexed(self) -> bool:
        """Return True if fields of the input find all tasks."""
        return [row[0] for row in await self._connection.execute(query("input_index", "state"))] == [True]

    async def _ask(
        self, name: str, names: Sequence[str], which: TaskFilter, more: Mapping[str, Any], **words: str
    ) -> Rows:
        context = None if which.context is None else encode(dict(which.context)).text
        params = {**asdict(which), "tags": list(which.tags), "context": context, **more}
        for name_of, value in params.items():
            for text in value if isinstance(value, (list, tuple)) else (value,):
                require_findable(text, name_of)
        if which.names_templates:
            ((params["named_tasks"],),) = await self._connection.execute(query("listing", "named_tasks"), params)
            if not params["named_tasks"]:
                return []
            names = [*names, "template"]
        if which.idempotency_key is not None:
            templates = await self._connection.execute(query("listing", "template_names"), params)
            tenants = [which.tenant, *(which.tenants or ())]
            params["identities"] = [
                key_identity(plan_key("/".join(template), tenant), which.idempotency_key)
                for template in templates
                for tenant in tenants
            ]
        text = query("listing", name).format(matching=_matching(names), **words)
        return await self._connection.execute(text, params)


def context_of(text: str) -> dict[str, Any]:
    """Parse `order.id = 7` into the values that an input must contain. A value that is not JSON is a string.

    Raises `UsageError`.
    """
    path, equals, value = text.partition("=")
    keys = [key.strip() for key in path.strip().split(".")]
    if not equals or not all(keys):
        raise UsageError(f"{text!r} does not name a field and its value", hint="such as order.id = 7, or name = ada")
    try:
        expected: Any = json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        expected = value.strip()
    for key in reversed(keys):
        expected = {key: expected}
    return dict(expected)


def _common(which: TaskFilter) -> str:
    return "\n".join(f"and {query('listing', name)}" for name in COMMON if getattr(which, name))


def _order(oldest_first: bool) -> dict[str, str]:
    order, beyond = ("asc", ">") if oldest_first else ("desc", "<")
    return {"order": order, "beyond": beyond}


def _matching(names: Sequence[str]) -> str:
    joined = [query("listing", "details")] if any(name in OF_DETAILS for name in names) else []
    clauses = [f"and {query('listing', name)}" for name in names]
    return "\n".join([query("listing", "tasks"), *joined, "where true", *clauses])
