"""Limits of submissions: tasks per minute of a client, a template or a tenant, and open tasks of a tenant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasker.engine.calls import Engine
from tasker.errors import QuotaExceeded
from tasker.settings.table import NamedTables
from tasker.settings.tenants import TenantQuota, label_of, quota_of
from tasker.template.plan import Plan

if TYPE_CHECKING:
    from tasker.services.submission.submit import Draft

OPEN_SECONDS = 10
"""Seconds after which to submit again if a tenant has too many open tasks."""
REASONS = {
    "client": "the client {name} submits at most {limit} tasks per minute",
    "template": "at most {limit} tasks of {name} are submitted per minute",
    "tenant": "tenant {name} submits at most {limit} tasks per minute",
    "open": "tenant {name} has at most {limit} open tasks",
}


class SubmissionLimits:
    """Limits that are counted in the database, so that all processes keep them together.

    `per_client` is the number of tasks that one authenticated client submits in a minute; 0: unlimited. A submission
    without any limit asks nothing.
    """

    def __init__(self, engine: Engine, tenants: Mapping[str, TenantQuota] = NamedTables(), per_client: int = 0) -> None:
        self._engine, self._tenants, self._per_client = engine, tenants, per_client
        self.admitted: Counter[str] = Counter()
        """Tasks of tenants that this process has admitted, by the tenant's label."""
        self.refused: Counter[tuple[str, str]] = Counter()
        """Tasks that were refused, by reason and the tenant's label ("" without a tenant)."""

    async def require(self, plan: Plan, drafts: Sequence[Draft], client: str | None) -> None:
        """Count the tasks against all limits that apply to them, or against none.

        Raises `QuotaExceeded`, which says when to submit again.
        """
        tenants = Counter(str(draft.item["tenant"]) for draft in drafts if "tenant" in draft.item)
        args = self._args(plan, len(drafts), tenants, client)
        if args:
            answer = await self._engine.read("admit", args)
            if answer:
                raise self._refusal(answer, tenants, len(drafts))
        for tenant, tasks in tenants.items():
            self.admitted[label_of(self._tenants, tenant)] += tasks

    def _args(self, plan: Plan, tasks: int, tenants: Mapping[str, int], client: str | None) -> dict[str, Any]:
        buckets = [("client", client, tasks, self._per_client)] if client is not None else []
        buckets.append(("template", f"{plan.namespace}/{plan.name}", tasks, plan.max_submits_per_minute or 0))
        most = []
        for tenant, number in tenants.items():
            quota = quota_of(self._tenants, tenant)
            buckets.append(("tenant", tenant, number, quota.max_submits_per_minute))
            if quota.max_open_tasks:
                most.append({"tenant": tenant, "tasks": number, "most": quota.max_open_tasks})
        limited = [dict(zip(("kind", "name", "tasks", "per_minute"), each, strict=True)) for each in buckets if each[3]]
        return {"buckets": limited, "open": most} if limited or most else {}

    def _refusal(self, answer: Mapping[str, Any], tenants: Mapping[str, int], tasks: int) -> QuotaExceeded:
        kind, name, limit = answer["kind"], answer["name"], answer["limit"]
        of_tenant = kind in ("tenant", "open")
        number = tenants[name] if of_tenant else tasks
        self.refused[kind, label_of(self._tenants, name) if of_tenant else ""] += number
        seconds = max(1, math.ceil(answer["retry_ms"] / 1000)) if "retry_ms" in answer else OPEN_SECONDS
        hint = f"submit again in {seconds} s" if number <= limit else f"submit at most {limit} tasks at once"
        return QuotaExceeded(REASONS[kind].format(name=name, limit=limit), retry_after=seconds, hint=hint)
