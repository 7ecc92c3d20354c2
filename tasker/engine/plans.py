"""Compiled templates in the database, with a bounded cache."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import PlanUnreadable, TaskNotFound, TemplateError, TemplateNotFound, UnknownLimit
from tasker.errors.remedies import remedy
from tasker.json_values import JsonText, require_findable, to_json
from tasker.template.content_hash import with_defaults
from tasker.template.diagnostics import did_you_mean
from tasker.template.plan import Plan, RetryPolicy


@dataclass(slots=True)
class CachedPlan:
    """Cached plan with its stored hash, the time it was cached (seconds since 1970), and the number of reads since
    then."""

    plan: Plan
    stored: str
    since: float
    asked: int = 0


@dataclass(frozen=True, slots=True)
class CacheStats:
    """State and statistics of a cache since the process started. Times are seconds since 1970."""

    total_entries: int
    hits: int
    misses: int
    evictions: int
    """Number of plans dropped to make room for others."""
    last_maintenance: float | None
    """Time of the last `clear`, of all or one plan: on request, or after a lost connection."""


class PlanCache:
    """Cache of plans by id; beyond `most` the least recently used is dropped."""

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self._most, self._clock = most, clock
        self._hits = self._misses = self._evictions = 0
        self._maintained: float | None = None
        self.plans: OrderedDict[int, CachedPlan] = OrderedDict()

    def get(self, template_id: int) -> Plan | None:
        entry = self.plans.get(template_id)
        if entry is None:
            self._misses += 1
            return None
        self._hits += 1
        entry.asked += 1
        self.plans.move_to_end(template_id)
        return entry.plan

    def keep(self, template_id: int, plan: Plan, stored: str) -> None:
        """Cache the plan, with the hash that is stored with it."""
        self.plans[template_id] = CachedPlan(plan, stored, self._clock())
        self.plans.move_to_end(template_id)
        if len(self.plans) > self._most:
            self._evictions += 1
            self.plans.popitem(last=False)

    def clear(self, template_id: int | None = None) -> int:
        """Drop one plan, or all, and return the number dropped."""
        dropped = len(self.plans) if template_id is None else int(template_id in self.plans)
        self._maintained = self._clock()
        if template_id is None:
            self.plans.clear()
        else:
            self.plans.pop(template_id, None)
        return dropped

    def stats(self) -> CacheStats:
        return CacheStats(len(self.plans), self._hits, self._misses, self._evictions, self._maintained)

    def of(self, plan: Plan) -> CachedPlan | None:
        """Return the cache entry of a plan with this content, or None."""
        return next((entry for entry in self.plans.values() if entry.plan.hash == plan.hash), None)

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest entry in seconds; 0 for an empty cache."""
        return max((self._clock() - entry.since for entry in self.plans.values()), default=0.0)

    @property
    def asked_each(self) -> float:
        """Average number of reads of a cached plan."""
        return sum(entry.asked for entry in self.plans.values()) / max(1, len(self.plans))


CACHED_PLANS = 256
_log = logging.getLogger("tasker.templates")

FIND = """select {found} from tasker.named_tasks n join tasker.task_namespaces s using (namespace_id)
  join tasker.templates t using (template_id)
  where s.name = {namespace} and n.name = {name} and n.version = coalesce(nullif({version}, ''), n.version)
  order by n.updated_at desc limit 1"""
"""SQL to find the registered template of a name; without a version, the most recently registered one."""

_FIND = FIND.format(found="t.template_id, t.hash", namespace="%s", name="%s", version="%s")


class TemplateFilter(NamedTuple):
    """Filter on registered templates by namespace, name or allowed `namespaces`; None selects all."""

    namespace: str | None = None
    name: str | None = None
    namespaces: Sequence[str] | None = None

    def params(self) -> dict[str, Any]:
        """As the queries take it. Raises `UsageError` for a name that none can have."""
        for what in ("namespace", "name"):
            require_findable(getattr(self, what) or "", what)
        return self._asdict() | {"namespaces": None if self.namespaces is None else list(self.namespaces)}


EVERY = TemplateFilter()


class RegisteredPlan(NamedTuple):
    """Plan with its id in the database, and the hash stored with that id.

    In a database that was recreated or restored to an earlier state, the same id may belong to another template.
    """

    template_id: int
    plan: Plan
    hash: str


def stored_plan(data: Mapping[str, Any]) -> Plan:
    """Return the plan as stored. Raises `PlanUnreadable` if it has fields that this version does not know."""
    try:
        return Plan.from_dict(data)
    except (TypeError, KeyError, ValueError) as error:
        name = "/".join(str(data.get(key)) for key in ("namespace", "name", "version"))
        raise PlanUnreadable(
            f"the stored template {name} cannot be read by this version of Tasker ({error})",
            hint="a newer version has stored it: bring this process up to that version",
        ) from error


def not_registered(namespace: str, name: str, version: str | None) -> TemplateNotFound:
    suffix = f" version {version}" if version else ""
    return TemplateNotFound(
        f"no template {namespace}/{name}{suffix} is registered", hint=remedy("{} shows what is", "tasker template list")
    )


def registration(plan: Plan, *, force: bool, adopt: bool) -> dict[str, Any]:
    """Return the arguments of `tasker.register_template_v1`."""
    text = JsonText(plan.to_json())
    return {"hash": plan.hash, "content": plan.id.hash, "plan": text, "force": force, "adopt": adopt}


def require_registered(plan: Plan, answer: Mapping[str, Any]) -> None:
    """Raise `TemplateError` if `tasker.register_template_v1` refused the plan."""
    if answer.get("refused"):
        raise TemplateError(
            f"template {plan.namespace}/{plan.name} version {plan.version} is registered with other content",
            hint="give it a new version, or register it with --force (tasks in flight keep the old content)",
        )
    if unknown := answer.get("unknown_limits"):
        known = answer["known_limits"]
        steps = [
            f"\n  step {step.name!r}: no limit {limit.name!r}"
            for step in plan.steps
            for limit in step.limits
            if limit.name in unknown
        ]
        raise UnknownLimit(
            f"template {plan.namespace}/{plan.name} names limits that no configuration declares:{''.join(steps)}",
            limits=unknown,
            known=known,
            hint=limit_hint(unknown[0], known),
        )


def limit_hint(name: str, known: Sequence[str]) -> str:
    """Return what to do about a limit that no configuration declares."""
    declare = f"declare it as [limits.{name}] in the configuration of a worker or orchestrator, and start that first"
    return did_you_mean(name, known) or declare


class PlanStore:
    """Store of plans by id, each read once; beyond 256 the least recently used is dropped.

    `defaults` apply to steps that set no retry policy. They are stored with the plan, so that a task keeps the defaults
    of its submission wherever it runs. A process without defaults uses those stored with the template.
    """

    def __init__(self, connection: Statements, defaults: RetryPolicy | None = None) -> None:
        self._connection, self._defaults = connection, defaults
        self.cache = PlanCache(CACHED_PLANS)
        self._ids: dict[str, tuple[int, str]] = {}
        """Id and stored hash of registered content (see `RegisteredPlan`), by the content's hash."""
        self._unreadable: dict[int, PlanUnreadable] = {}
        self._submitted: dict[tuple[int, str], RegisteredPlan] = {}
        """Plan with this process's defaults that is submitted in place of a found template, by the template's id and
        hash."""

    async def register(self, plan: Plan, *, force: bool = False) -> RegisteredPlan:
        """Store the plan with the defaults, make it the current one of its name and version, and return what is stored.

        The database is asked each time, because another process may have registered other content since. Raises
        `TemplateError` if that version exists with other content, unless `force` is set; running tasks keep their
        content in any case. Raises `UnknownLimit`.
        """
        if self._defaults is not None:
            return await self._register(with_defaults(plan, self._defaults), force)
        return await self._as_stored(await self._register(plan, force, adopt=True))

    async def pinned(self, plan: Plan, *, force: bool = False) -> RegisteredPlan:
        """Return the stored plan to which a task of the plan is pinned.

        If it is not known here, it is registered and becomes the current one; raises as `register`.
        """
        effective_plan = plan if self._defaults is None else with_defaults(plan, self._defaults)
        if (known := self._ids.get(effective_plan.hash)) is None:
            return await self.register(plan, force=force)
        template_id, stored = known
        registered = RegisteredPlan(template_id, effective_plan, stored)
        return registered if self._defaults is not None else await self._as_stored(registered)

    async def _as_stored(self, registered: RegisteredPlan) -> RegisteredPlan:
        """Replace its plan by the stored one, which has the stored defaults."""
        try:
            return registered._replace(plan=await self.get(registered.template_id))
        except PlanUnreadable:  # stored by a newer version
            return registered

    async def _register(self, plan: Plan, force: bool, adopt: bool = False) -> RegisteredPlan:
        text = to_json(registration(plan, force=force, adopt=adopt))
        answer = await self._connection.call("tasker.register_template_v1(%s::jsonb)", text)
        require_registered(plan, answer)
        self._ids[plan.hash] = answer["template"], answer["hash"]
        if answer["hash"] == plan.hash:
            self.cache.keep(answer["template"], plan, answer["hash"])
        return RegisteredPlan(answer["template"], plan, answer["hash"])

    async def register_all(
        self, plans: Sequence[Plan], state: str, named: Mapping[str, Sequence[str]], *, force: bool = False
    ) -> Mapping[str, Any]:
        """Store all plans, or none, if the registered versions of the `named` templates still have this state.

        Returns the answer of `tasker.apply_templates_v1`; nothing is cached, since the caller's transaction may fail.
        """
        effective = plans if self._defaults is None else [with_defaults(plan, self._defaults) for plan in plans]
        given = [registration(plan, force=force, adopt=self._defaults is None) for plan in effective]
        text = to_json({"state": state, **named, "registrations": given})
        return await self._connection.call("tasker.apply_templates_v1(%s::jsonb)", text)

    async def get(self, template_id: int) -> Plan:
        """Return the plan of that id. Raises `TaskNotFound` if there is none, and `PlanUnreadable`."""
        plan = self.cache.get(template_id)
        if (known := self._unreadable.get(template_id)) is not None:
            raise PlanUnreadable(known.message, hint=known.hint)
        if plan is None:
            rows = await self._connection.execute(
                "select plan, hash from tasker.templates where template_id = %s", (template_id,)
            )
            if not rows:
                raise TaskNotFound(f"no template {template_id} in this database")
            ((data, stored),) = rows
            plan = self._read(template_id, data)
            self.cache.keep(template_id, plan, stored)
        return plan

    def forget(self) -> int:
        """Drop every cached plan, so that it is read again when needed, and return their number."""
        for known in (self._ids, self._unreadable, self._submitted):
            known.clear()
        return self.cache.clear()

    async def refresh(self, namespace: str, name: str, version: str) -> RegisteredPlan:
        """Read a registered template again. Raises as `find`."""
        self._unreadable.clear()
        registered = await self.find(namespace, name, version)
        self.cache.clear(registered.template_id)
        return registered._replace(plan=await self.get(registered.template_id))

    async def find(self, namespace: str, name: str, version: str | None = None) -> RegisteredPlan:
        """Return the registered template of that name; without a version, the most recently registered one.

        The database resolves the name each time; a plan is read once. Raises `TemplateNotFound` if there is none,
        `UsageError` for a name that no template can have, and `PlanUnreadable`.
        """
        for what, text in (("namespace", namespace), ("template", name), ("version", version)):
            require_findable(text, what)
        rows = await self._connection.execute(_FIND, (namespace, name, version or ""))
        if not rows:
            raise not_registered(namespace, name, version)
        ((template_id, stored),) = rows
        if (known := self.cache.plans.get(template_id)) is not None and known.stored != stored:
            self.forget()  # the database was replaced by another one
        registered = RegisteredPlan(template_id, await self.get(template_id), stored)
        self._ids.setdefault(registered.plan.hash, (template_id, stored))
        return registered if self._defaults is None else await self._with_defaults(registered)

    async def _with_defaults(self, registered: RegisteredPlan) -> RegisteredPlan:
        """Return the template with the defaults of this process, as it is submitted."""
        key = registered.template_id, registered.hash
        if (known := self._submitted.get(key)) is not None:
            return known
        try:
            submitted = await self.register(registered.plan)
        except TemplateError:  # other content was registered in the meantime
            return registered
        if len(self._submitted) == CACHED_PLANS:
            self._submitted.clear()
        self._submitted[key] = submitted
        return submitted

    async def registered(
        self,
        which: TemplateFilter = EVERY,
        *,
        limit: int = 1000,
        offset: int = 0,
        after: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Return a page of registered templates in each version, by namespace and name, the newest version first.

        The page begins behind the row `after` of an earlier page, or leaves out the first `offset` rows.
        """
        columns = ("namespace", "name", "version", "description", "steps", "updated_at")
        last = after or {}
        behind = {f"after_{key}": last.get(key, "") for key in ("namespace", "name", "version")}
        params = {**behind, "after_at": last.get("updated_at"), "offset": offset, "limit": limit}
        rows = await self._connection.execute(query("templates", "registered"), which.params() | params)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    async def newest(self, which: TemplateFilter = EVERY, *, limit: int, offset: int = 0) -> list[dict[str, Any]]:
        """Return a page of registered templates, each by its newest version with the number of its `versions`."""
        columns = ("namespace", "name", "version", "description", "steps", "updated_at", "versions")
        params = which.params() | {"limit": limit, "offset": offset}
        rows = await self._connection.execute(query("templates", "newest"), params)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    async def count(self, which: TemplateFilter, shown: Sequence[str], most: int) -> tuple[int, dict[str, int]]:
        """Return the number of versions of templates, and that of each namespace in `shown`; each counted to `most`."""
        params = which.params() | {"shown": list(shown), "most": most}
        counts: dict[Any, int] = dict(await self._connection.execute(query("templates", "counted"), params))
        return counts.pop(None), counts

    def _read(self, template_id: int, data: Mapping[str, Any]) -> Plan:
        """Parse the plan; an unreadable plan is logged, and parsed, only once."""
        try:
            return stored_plan(data)
        except PlanUnreadable as error:
            _log.warning("template_unreadable id=%s its tasks are left to newer processes: %s", template_id, error)
            if len(self._unreadable) == CACHED_PLANS:
                self._unreadable.clear()
            self._unreadable[template_id] = error
            raise
