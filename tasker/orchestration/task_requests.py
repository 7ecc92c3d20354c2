"""Tasks submitted by message: the queue `orchestration_task_requests`.

Requests for one template become tasks in one transaction; messages are acknowledged after its commit. A request that
comes again asks for the same task. An invalid request is quarantined with the reason and blocks no other.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from tasker.clock import Clock
from tasker.dataclasses import dataclass
from tasker.db.sql_files import query
from tasker.engine.answers import SubmitAnswer
from tasker.engine.bisect import halved
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker, OnAdvanced
from tasker.engine.plans import PlanStore, RegisteredPlan
from tasker.engine.task_log import trace_of
from tasker.errors import (
    DatabaseError,
    DuplicateTask,
    IdempotencyKeyReused,
    Overloaded,
    PlanUnreadable,
    QuotaExceeded,
    TaskerError,
)
from tasker.logging.lines import ids_of_task, log_line
from tasker.logging.trace_context import TraceContext
from tasker.messaging.port import QueuedMessage
from tasker.orchestration.poison_guard import MOST_RECEPTIONS, PoisonGuard, exceeds_redeliveries, split_suspects
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.by_message import TaskRequestMessage
from tasker.services.submission.check import check_priority
from tasker.services.submission.limits import SubmissionLimits
from tasker.services.submission.lost_commit import log_created_tasks
from tasker.services.submission.reused_keys import refuse_reused_keys
from tasker.services.submission.submit import Draft, DraftFactory

_log = logging.getLogger("tasker.orchestration")

Name = tuple[str, str, str | None]
Kind = tuple[Name, bool]
"""Requests admitted together: those for one template that are urgent, or are not."""

PUT_OFF_SECONDS = 5.0
"""Longest time for which no message is taken after a namespace was full: it delays requests for other namespaces."""


NEVER_MET = (
    f"it was taken {MOST_RECEPTIONS} times and never met: each process that took it ended or stood still meanwhile;"
    " see the orchestrators' logs, and what checking it against input_schema takes, before you ask for it again"
)


@dataclass(frozen=True, slots=True)
class RequestedTask:
    """A valid request and its message."""

    message: QueuedMessage
    draft: Draft


class TaskRequestConsumer:
    """Consumer that creates tasks from messages. With `admission`, requests for a full namespace are deferred, and with
    `limits` those of a template or tenant that has submitted too much.

    `on_advanced` gets each answer of the engine at once, even if a later step fails.
    """

    def __init__(
        self,
        engine: Engine,
        plans: PlanStore,
        drafts: DraftFactory,
        clock: Clock,
        admission: SubmissionAdmission | None = None,
        on_advanced: OnAdvanced = lambda _: None,
        limits: SubmissionLimits | None = None,
    ) -> None:
        self._engine, self._plans, self._drafts = engine, plans, drafts
        self._clock, self._admission, self._on_advanced = clock, admission, on_advanced
        self._limits = limits
        self._not_before = -math.inf
        self._receptions = PoisonGuard(engine, engine.messaging.receive_task_requests)
        self._open: dict[int, QueuedMessage] = {}

    def longest_pause(self) -> float:
        """Return the seconds until deferred requests are due, or else until those of a crashed process are visible."""
        remaining = self._not_before - self._clock.monotonic()
        return remaining if remaining > 0 else self._engine.rules.hidden_seconds

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        """Take up to `limit` messages and create their tasks; return how many messages there were.

        Takes none for a while after a namespace was full. Raises `DatabaseError`, after which the messages are
        delivered again.
        """
        if self._clock.monotonic() < self._not_before:
            return 0
        messages = await self._receptions.take(limit)
        self._open = {message.message_id: message for message in messages}
        async with self._receptions.returned(lambda: [*self._open.values()]):
            for part in split_suspects(messages):
                for (name, _), requests in (await self._decoded(part)).items():
                    await self._create_of(name, requests)
        return len(messages)

    async def _ack(self, messages: Sequence[QueuedMessage]) -> None:
        await self._engine.messaging.ack_messages(messages)
        for message in messages:
            self._open.pop(message.message_id, None)

    async def _decoded(
        self, messages: Sequence[QueuedMessage]
    ) -> dict[Kind, list[tuple[QueuedMessage, TaskRequestMessage]]]:
        """Return the requests by template and urgency, in order of arrival."""
        by_kind: dict[Kind, list[tuple[QueuedMessage, TaskRequestMessage]]] = {}
        for message in messages:
            try:
                if exceeds_redeliveries(message):
                    raise TaskerError(NEVER_MET)
                request = TaskRequestMessage.decode(message.payload)
            except Exception as error:  # the same error would occur every time
                await self._refuse(message, error)
                continue
            name = (request.namespace, request.template, request.version)
            by_kind.setdefault((name, check_priority(request.request.priority) > 0), []).append((message, request))
        return by_kind

    async def _create_of(self, name: Name, requests: Sequence[tuple[QueuedMessage, TaskRequestMessage]]) -> None:
        messages = [message for message, _ in requests]
        try:
            template = await self._plans.find(*name)
            if self._admission is not None:
                usual = template.plan.priority
                lowest = min(check_priority(request.request.priority, usual) for _, request in requests)
                await self._admission.require(template.plan, len(requests), priority=lowest)
        except Overloaded as error:
            await self._put_off(messages, error.retry_after or 1.0)
        except PlanUnreadable as error:
            _log.warning("task_requests_deferred template=%s reason=%s", name[1], error.message)
            await self._leave_to_newer(messages)
        except DatabaseError:
            raise
        except TaskerError as error:
            for message in messages:
                await self._refuse(message, error)
        else:
            drafted = await self._drafted(template, requests)
            await self._create(template, await self._within_limits(template, drafted))

    async def _drafted(
        self, template: RegisteredPlan, requests: Sequence[tuple[QueuedMessage, TaskRequestMessage]]
    ) -> list[RequestedTask]:
        requested_tasks: list[RequestedTask] = []
        for message, request in requests:
            try:
                requested_tasks.append(
                    RequestedTask(message, self._drafts.draft(template.plan, request.request, request.task_uuid))
                )
            except Exception as error:  # the same error would occur every time
                await self._refuse(message, error)
        return requested_tasks

    async def _within_limits(self, template: RegisteredPlan, asked: Sequence[RequestedTask]) -> list[RequestedTask]:
        """Return the requests that the limits admit, and defer the others; each tenant's by itself."""
        if self._limits is None:
            return list(asked)
        admitted: list[RequestedTask] = []
        by_tenant: dict[Any, list[RequestedTask]] = {}
        for request in asked:
            by_tenant.setdefault(request.draft.item.get("tenant"), []).append(request)
        for requests in by_tenant.values():
            for request in requests:
                try:
                    await self._limits.require(template.plan, [request.draft], None)
                except QuotaExceeded as error:
                    left = requests[requests.index(request) :]
                    await self._put_off([task.message for task in left], error.retry_after or 1.0)
                    break
                admitted.append(request)
        return admitted

    async def _create(self, template: RegisteredPlan, asked: Sequence[RequestedTask]) -> None:
        """Create the tasks in one transaction, unless the database refuses values (rule 5)."""

        async def create(part: Sequence[RequestedTask]) -> None:
            once = list({task.draft.task_uuid: task.draft for task in part}.values())
            began = perf_counter()
            args = self._drafts.args(template.template_id, once, stored=template.hash)
            answer = await self._engine.call_typed("submit", args, SubmitAnswer)
            if answer.forgotten:
                self._plans.forget()
                return await self._put_off([task.message for task in part], PUT_OFF_SECONDS)
            log_created_tasks(self._engine.listeners, template.plan, once, answer, began)
            self._on_advanced(answer)
            again = [task for task in part if task.draft.task_uuid not in answer.created]
            refused = await self._refuse_reused_keys(again) if again else []
            await self._tell_duplicates(template, once, answer)
            await self._ack([task.message for task in part if task not in refused])

        await halved(asked, create, lambda one, error: self._refuse(one.message, error))

    async def _refuse_reused_keys(self, again: Sequence[RequestedTask]) -> list[RequestedTask]:
        """Refuse the requests whose idempotency key names a task with another input, and return them."""
        duplicates = [DuplicateTask("a task with this identity exists") for _ in again]
        drafts = [request.draft for request in again]
        answers = await refuse_reused_keys(self._engine.connection, drafts, duplicates)
        refused = [pair for pair in zip(again, answers, strict=True) if isinstance(pair[1], IdempotencyKeyReused)]
        for task, error in refused:
            await self._refuse(task.message, error)
        return [request for request, _ in refused]

    async def _tell_duplicates(self, template: RegisteredPlan, drafts: Sequence[Draft], answer: SubmitAnswer) -> None:
        """Log the identifiers of existing tasks: a caller that requested a duplicate waits for another identifier."""
        again = [draft for draft in drafts if draft.task_uuid not in answer.created]
        if not again:
            return
        identities = {"identities": [draft.identity for draft in again]}
        rows = await self._engine.connection.execute(query("tasks", "of_identity"), identities)
        existing = {row[0]: ids_of_task(row[1], row[2], template.plan.namespace, trace_of(row[3])) for row in rows}
        for draft in again:
            unknown = {"namespace": template.plan.namespace}
            fields = {"template": template.plan.name, "request": draft.task_uuid}
            if draft.identity not in existing and (running := answer.running.get(draft.task_uuid)):
                fields["running"] = running[0]
            log_line(_log, logging.INFO, "task_requested_again", existing.get(draft.identity, unknown) | fields)

    async def _refuse(self, message: QueuedMessage, error: Exception) -> None:
        """Quarantine the message, then acknowledge it: a crash in between quarantines it twice."""
        reason = error.message if isinstance(error, TaskerError) else f"the request cannot be used: {error!r}"
        fields = {"id": message.message_id, "reason": reason}
        log_line(_log, logging.WARNING, "task_request_refused", _asked_for(message) | fields)
        await self._engine.quarantine_message(message.queue, message.message_id, message.payload, reason)
        await self._ack([message])

    async def _leave_to_newer(self, messages: Sequence[QueuedMessage]) -> None:
        """Defer requests that only an orchestrator of a newer version can read, without delaying other templates."""
        messaging = self._engine.messaging
        if not messaging.capabilities.native_delay:
            await self._put_off(messages, PUT_OFF_SECONDS)
            return
        for message in messages:
            await messaging.send_message_with_delay(message.queue, message.payload, PUT_OFF_SECONDS)
        await self._ack(messages)

    async def _put_off(self, messages: Sequence[QueuedMessage], seconds: float) -> None:
        """Send the messages again at the end of the queue: giving them back would count towards their delivery limit.

        A crash in between leaves both, which request the same task.
        """
        self._not_before = self._clock.monotonic() + min(seconds, PUT_OFF_SECONDS)
        messaging = self._engine.messaging
        await messaging.backend.send_messages(messages[0].queue, [message.payload for message in messages])
        await self._ack(messages)


def _asked_for(message: QueuedMessage) -> dict[str, Any]:
    """Return the log fields of the message's task, or none if the message cannot be read."""
    try:
        decoded = TaskRequestMessage.decode(message.payload)
    except Exception:  # any error of the message is the reason of its refusal
        return {}
    request = decoded.request
    place = TraceContext(request.traceparent, request.tracestate) if request.traceparent else None
    return ids_of_task(decoded.task_uuid, request.correlation_id or decoded.task_uuid, decoded.namespace, place)
