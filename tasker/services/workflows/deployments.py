"""Deployments: what registering templates would change, and registering them all at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.plans import PlanStore, require_registered
from tasker.errors import RegistryChanged
from tasker.services.audit import audited
from tasker.services.fleet.overview import Workers
from tasker.services.viewer import require_one_of
from tasker.services.workflows.texts import FILE, CompiledTexts, TemplateTexts
from tasker.template.plan import Plan
from tasker.views.deployments import (
    Action,
    Deployment,
    OpenStep,
    OpenTasks,
    PlannedTemplate,
    TemplateChange,
    UnservedSteps,
)
from tasker.views.fleet import WorkerInfo
from tasker.views.templates import Registration, registration

if TYPE_CHECKING:
    from tasker.template.diff import Change, Version

EVALUATED = ("tasker.rules", "tasker.for_each")
"""Handlers of steps that every worker evaluates itself."""
OUTDATED = "the registered templates have changed since the plan"
AGAIN = "make the plan again: tasker plan"


class RegisteredVersion(NamedTuple):
    """Registered version of a template."""

    namespace: str
    name: str
    version: str
    content: str
    template_id: int
    updated_at: datetime


class Deployments:
    """Service that plans and applies the registration of all templates of a text."""

    def __init__(self, texts: TemplateTexts, plans: PlanStore, workers: Workers, connection: Statements) -> None:
        self._texts, self._plans, self._workers, self._connection = texts, plans, workers, connection

    async def plan(
        self,
        text: str,
        environment: str | None = None,
        *,
        force: bool = False,
        namespaces: Collection[str] | None = None,
    ) -> Deployment:
        """Return what registering the templates of a text would change.

        `namespaces`: only templates of these may be registered; None allows all. Raises the errors of
        `TemplateTexts.compiled`, and `NotPermitted`.
        """
        compiled = await self._compiled(text, environment, namespaces)
        connection, named = self._connection, _names(compiled.plans)
        ((state,),) = await connection.execute(query("deployments", "state"), named)
        spaces = {"namespaces": sorted({plan.namespace for plan in compiled.plans})}
        rows = [RegisteredVersion(*row) for row in await connection.execute(query("deployments", "registered"), spaces)]
        gone = _gone(rows, compiled.plans)
        census = await connection.execute(query("deployments", "census"), _names([*compiled.plans, *gone]))
        templates = [await self._planned(version, rows, force) for version in compiled.versions]
        workers = [worker for worker in await self._workers.list() if (worker.state, worker.kind) == ("live", "worker")]
        return Deployment(
            has_changes=any(template.action not in ("unchanged", "gone") for template in templates),
            token=made_token(text, environment, force=force, state=state),
            templates=[*templates, *map(_gone_template, gone)],
            open_tasks=[_open_tasks(row) for row in census],
            unserved=[*_unserved_plans(compiled.plans, workers), *_unserved_tasks(census, workers)],
        )

    @audited("App.deployments.apply", "_connection")
    async def apply(
        self,
        text: str,
        token: str,
        environment: str | None = None,
        *,
        force: bool = False,
        namespaces: Collection[str] | None = None,
        actor: str | None = None,
    ) -> Registration:
        """Register every template of a text in one transaction, all or none.

        `token` is that of `plan` for the same arguments; `actor` is recorded, by default the user of this process.

        Raises `RegistryChanged` if they are others, or if another
        version of a template was registered since; the errors of `plan`; `TemplateError` for a version that has other
        content, unless `force` is set.
        """
        from tasker.services.workflows.registration import unknown_limits_located

        compiled = await self._compiled(text, environment, namespaces)
        content, _, state = token.partition(":")
        if content != made_token(text, environment, force=force, state="").partition(":")[0]:
            raise RegistryChanged("the plan is for other templates or options", hint=AGAIN)
        answer = await self._plans.register_all(compiled.plans, state, _names(compiled.plans), force=force)
        if answer.get("changed"):
            raise RegistryChanged(OUTDATED, hint=AGAIN)
        if "refusal" in answer:
            with unknown_limits_located(compiled.origins[answer["place"]], {FILE: text}):
                require_registered(compiled.plans[answer["place"]], answer["refusal"])
        return registration(compiled.plans, compiled.diagnostics, registered=True)

    async def _compiled(self, text: str, environment: str | None, namespaces: Collection[str] | None) -> CompiledTexts:
        compiled = await self._texts.compiled(text, environment)
        for plan in compiled.plans:
            require_one_of(namespaces, plan.namespace)
        return compiled

    async def _planned(self, version: Version, rows: Sequence[RegisteredVersion], force: bool) -> PlannedTemplate:
        from tasker.template.diff import Comparison, Version, compare
        from tasker.template.version_advice import version_advice

        plan = version.plan
        same_name = [row for row in rows if (row.namespace, row.name) == (plan.namespace, plan.name)]
        same = next((row for row in same_name if row.version == plan.version), None)
        other = same or next(iter(same_name), None)
        action: Action = "new" if other is None else "changed"
        if same is not None:
            differs: Action = "replaced" if force else "refused"
            action = "unchanged" if same.content == plan.id.hash else differs
        before = None if other is None or action == "unchanged" else Version(await self._plans.get(other.template_id))
        comparison = compare(before, version) if before is not None else Comparison(None, version)
        advice = version_advice(comparison)
        return PlannedTemplate(
            plan.namespace,
            plan.name,
            plan.version,
            action,
            None if other is None else other.version,
            None if advice is None or advice.enough else advice.advised,
            [_change(change) for change in comparison.changes],
            [*_schedules(None if before is None else before.plan, plan)] if action != "unchanged" else [],
            None if version.places is None else version.places.of().line,
        )


def _names(plans: Iterable[Plan | RegisteredVersion]) -> dict[str, list[str]]:
    names = sorted({(plan.namespace, plan.name) for plan in plans})
    return {"namespaces": [namespace for namespace, _ in names], "names": [name for _, name in names]}


def made_token(text: str, environment: str | None, *, force: bool, state: str) -> str:
    """Return the token of a plan; `state` is that of `tasker.registry_state`."""
    content = json.dumps([text, environment, force], ensure_ascii=False)
    return f"{hashlib.sha256(content.encode()).hexdigest()}:{state}"


def _gone(rows: Iterable[RegisteredVersion], plans: Iterable[Plan]) -> list[RegisteredVersion]:
    """Return the last registered version of each template that is not among the plans."""
    known = {(plan.namespace, plan.name) for plan in plans}
    latest: dict[tuple[str, str], RegisteredVersion] = {}
    for row in rows:
        if (row.namespace, row.name) not in known:
            latest.setdefault((row.namespace, row.name), row)
    return list(latest.values())


def _gone_template(row: RegisteredVersion) -> PlannedTemplate:
    return PlannedTemplate(row.namespace, row.name, row.version, "gone", row.version, None, [], [], None)


def _change(change: Change) -> TemplateChange:
    line = None if change.after is None else int(change.after.rpartition(":")[2])
    breaking = change.to_dict()["breaking"]
    return TemplateChange(
        change.code, breaking, str(change.level), str(change.reader), change.path, change.message, line
    )


def _schedules(before: Plan | None, after: Plan) -> Iterator[str]:
    old = {} if before is None else {schedule["name"]: schedule["spec"] for schedule in before.schedules}
    new = {schedule["name"]: schedule["spec"] for schedule in after.schedules}
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            yield f"{name} ends"
        elif old.get(name) != new[name]:
            yield f"{name} {'changes' if name in old else 'begins'}"


def _open_tasks(row: Sequence[Any]) -> OpenTasks:
    namespace, name, version, hash_, current, tasks, oldest, steps = row
    waiting = [OpenStep(step["step"], step["handler"], step["open"]) for step in _of_handlers(steps)]
    return OpenTasks(namespace, name, version, hash_, current, tasks, oldest, waiting)


def _of_handlers(steps: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (step for step in steps if step["handler"] not in EVALUATED)


def _unserved_plans(plans: Iterable[Plan], workers: Sequence[WorkerInfo]) -> Iterator[UnservedSteps]:
    for plan in plans:
        steps = [step for step in plan.steps if step.has_handler]
        needed = [(step.name, step.handler.callable, step.requires, step.slots) for step in steps]
        yield from _unserved(f"{plan.namespace}/{plan.name}:{plan.version}", plan.namespace, needed, workers, False)


def _unserved_tasks(census: Iterable[Sequence[Any]], workers: Sequence[WorkerInfo]) -> Iterator[UnservedSteps]:
    for namespace, name, version, *_, steps in census:
        needed = [(step["step"], step["handler"], step["requires"], step["slots"]) for step in _of_handlers(steps)]
        yield from _unserved(f"{namespace}/{name}:{version}", namespace, needed, workers, True)


def _unserved(
    template: str,
    namespace: str,
    steps: Iterable[tuple[str, str, Sequence[str], int]],
    workers: Sequence[WorkerInfo],
    open_tasks: bool,
) -> Iterator[UnservedSteps]:
    """Yield the steps without a live worker, by reason."""
    serving = [worker for worker in workers if namespace in worker.namespaces]
    reasons: dict[str, list[str]] = {}
    for name, handler, requires, slots in steps:
        having = [worker for worker in serving if handler in worker.callables]
        tagged = [worker for worker in having if set(requires) <= set(worker.tags)]
        if not serving:
            reason = f"no live worker serves the namespace {namespace}"
        elif not having:
            reason = f"no live worker of {namespace} has the handler {handler}"
        elif not tagged:
            reason = f"no live worker with the handler {handler} has the tags {', '.join(requires)}"
        elif all(worker.concurrency < slots for worker in tagged):
            reason = f"no live worker with the handler {handler} has {slots} slots"
        else:
            continue
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        yield UnservedSteps(template, names, reason, open_tasks)
