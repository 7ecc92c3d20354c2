"""Use cases of dead letters. They only record; `retry` alone changes a task and its steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.errors import DeadLetterNotFound, StateMachineError, UsageError
from tasker.errors.remedies import see
from tasker.json_values import encode
from tasker.services.audit import audited
from tasker.services.operators.steps import Steps
from tasker.services.tasks.read import checked, names, not_found
from tasker.services.viewer import Redaction, Viewed
from tasker.template.diagnostics import did_you_mean
from tasker.views.dead_letters import (
    REASONS,
    STATUSES,
    DeadLetter,
    FailureGroup,
    QueuedInvestigation,
    ReasonStats,
    TaskHealth,
)
from tasker.views.model import snake_case
from tasker.views.steps import RetriedSteps

T = TypeVar("T")


class DeadLetters(Viewed):
    """Dead letters: reading, opening and updating of entries.

    Ids are text; a malformed one raises `UsageError`. `namespaces` restricts a method to those, in addition to what is
    requested; None allows all.
    """

    def __init__(self, engine: Engine, steps: Steps, redaction: Redaction | None = None) -> None:
        self._engine, self._steps, self._redaction = engine, steps, redaction

    async def list(
        self,
        *,
        status: str | None = None,
        reason: str | None = None,
        namespace: str | None = None,
        template: str | None = None,
        fingerprint: str | None = None,
        limit: int = 50,
        offset: int = 0,
        after: str | None = None,
        namespaces: Collection[str] | None = None,
    ) -> Sequence[DeadLetter]:
        """Return entries, the newest first, starting after the entry `after`.

        Raises `UsageError` for an unknown status or reason.
        """
        which = {"status": known(status, STATUSES, "status"), "reason": known(reason, REASONS, "reason")}
        more = {
            "after": after and _entry(after),
            "namespace": namespace,
            "template": template,
            "fingerprint": fingerprint,
            "namespaces": names(namespaces),
        }
        return await self._list(**which, **more, limit=limit, offset=offset)

    async def of_task(self, task_uuid: str) -> DeadLetter:
        """Return the newest entry of a task. Raises `DeadLetterNotFound`."""
        entries = await self._list(task=checked(task_uuid), limit=1)
        if not entries:
            raise DeadLetterNotFound(f"task {task_uuid} was never a dead letter", hint=see("tasker dlq list"))
        return entries[0]

    async def entry(self, entry_uuid: str) -> DeadLetter:
        """Return one entry. Raises `DeadLetterNotFound`."""
        entries = await self._list(entry=_entry(entry_uuid), limit=1)
        if not entries:
            raise missing(entry_uuid)
        return entries[0]

    async def stats(self) -> Sequence[ReasonStats]:
        """Return the counts of each reason that has entries."""
        return [ReasonStats(*row) for row in await self._query("stats")]

    async def queue(
        self, *, limit: int = 100, namespaces: Collection[str] | None = None
    ) -> Sequence[QueuedInvestigation]:
        """Return pending entries, the most urgent first."""
        rows = await self._query("queue", limit=limit, namespaces=names(namespaces))
        return [QueuedInvestigation(*row) for row in rows]

    async def staleness(self, *, limit: int = 100, namespaces: Collection[str] | None = None) -> Sequence[TaskHealth]:
        """Return open tasks before they become dead letters: stale ones, then warnings, then healthy ones."""
        rows = await self._query("staleness", limit=limit, namespaces=names(namespaces))
        return [TaskHealth(*row) for row in rows]

    async def groups(self, *, limit: int = 50, namespaces: Collection[str] | None = None) -> Sequence[FailureGroup]:
        """Return pending entries grouped by the fingerprints of their failures, the largest group first."""
        groups = [FailureGroup(*row) for row in await self._query("groups", limit=limit, namespaces=names(namespaces))]
        return await self._failures(groups, lambda group: group.namespaces)

    async def trend(
        self,
        fingerprints: Collection[str],
        *,
        hours: float = 24.0,
        slices: int = 24,
        namespaces: Collection[str] | None = None,
    ) -> Mapping[str, Sequence[int]]:
        """Return the number of new entries of each fingerprint per slice of the last hours, including closed
        entries."""
        counts = {key: [0] * slices for key in fingerprints}
        params = {"seconds": 3600.0 * hours, "slices": slices, "namespaces": names(namespaces)}
        for fingerprint, place, entries in await self._query("trend", fingerprints=list(counts), **params):
            counts[fingerprint][place] = entries
        return counts

    @audited("App.dead_letters.open")
    async def open(
        self,
        task_uuid: str,
        *,
        actor: str,
        notes: str | None = None,
        reason: str = "manual_dlq",
        metadata: Mapping[str, Any] | None = None,
    ) -> DeadLetter:
        """Open an entry for a task; the task itself continues.

        Raises `TaskNotFound`, and `StateMachineError` if the task has a pending entry.
        """
        task = checked(task_uuid)
        params = {"task": task, "actor": actor, "notes": notes, "metadata": _json(metadata)}
        rows = await self._query("open", reason=known(reason, REASONS, "reason"), **params)
        if rows:
            return await self.entry(rows[0][0])
        if await self._list(task=task, status="pending", limit=1):
            raise StateMachineError(f"task {task} has a pending entry", hint=see("tasker dlq show"))
        raise not_found(task)

    @audited("App.dead_letters.update")
    async def update(
        self,
        entry_uuid: str,
        *,
        status: str | None = None,
        notes: str | None = None,
        resolved_by: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> DeadLetter:
        """Update an entry: values that are None stay unchanged, and metadata is merged into the existing metadata.

        The task and its steps are not changed. Raises `DeadLetterNotFound`, `UsageError`, `NotStorable`, and
        `StateMachineError` if a closed entry would become pending while its task has another pending one.
        """
        entry = _entry(entry_uuid)
        params = {"entry": entry, "notes": notes, "by": resolved_by, "metadata": _json(metadata)}
        if status == "pending" and (other := await self._pending_beside(entry)):
            raise StateMachineError(f"its task has another pending entry: {other}", hint="close that entry first")
        if not await self._query("update", status=known(status, STATUSES, "status"), **params):
            raise missing(entry)
        return await self.entry(entry)

    @audited("App.dead_letters.retry")
    async def retry(self, entry_uuid: str, *, actor: str, reason: str) -> RetriedSteps:
        """Reset the failed steps of the entry's task and close the entry with the reason in its notes, all or nothing.

        If no step is in `error` any more, the entry stays as it is. Raises as `Steps.retry`, and `DeadLetterNotFound`.
        """
        entry = await self.entry(entry_uuid)
        done = await self._steps.retry(entry.task_uuid, actor=actor, reason=reason)
        if done.reset:
            notes = "\n".join(filter(None, (entry.resolution_notes, f"retried: {reason}")))
            await self.update(entry_uuid, status="manually_resolved", notes=notes, resolved_by=actor)
        return done

    async def _pending_beside(self, entry: str) -> str | None:
        task = (await self.entry(entry)).task_uuid
        entries = await self._list(task=task, status="pending", limit=1)
        return next((other.dlq_entry_uuid for other in entries if other.dlq_entry_uuid != entry), None)

    async def _list(self, **which: Any) -> Sequence[DeadLetter]:
        filters = ("status", "reason", "fingerprint", "namespace", "namespaces", "template", "entry", "task", "after")
        params = {**dict.fromkeys(filters), "offset": 0, **which}
        entries = [DeadLetter(*row) for row in await self._query("list", **params)]
        return await self._failures(entries, lambda entry: [(entry.task_snapshot or {}).get("namespace", "")])

    async def _failures(self, failures: Sequence[T], namespaces: Callable[[T], Iterable[str]]) -> Sequence[T]:
        return failures if self._redaction is None else await self._redaction.failures(failures, namespaces)

    async def _query(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("dead_letters", name), params)


def known(word: str | None, words: Sequence[str], what: str) -> str | None:
    """Return the word in the database's spelling; `MaxRetriesExceeded` is accepted too. Raises `UsageError`."""
    if word is None:
        return None
    plain = snake_case(word)
    if plain not in words:
        hint = did_you_mean(plain, words) or f"one of: {', '.join(words)}"
        raise UsageError(f"{word!r} is not a valid {what} of a dead letter", hint=hint)
    return plain


def _entry(entry_uuid: str) -> str:
    try:
        return str(UUID(entry_uuid))
    except ValueError:
        raise UsageError(f"{entry_uuid!r} is not an entry's identifier", hint=see("tasker dlq list")) from None


def missing(entry_uuid: str) -> DeadLetterNotFound:
    return DeadLetterNotFound(f"no entry {entry_uuid} in this database", hint=see("tasker dlq list"))


def _json(metadata: Mapping[str, Any] | None) -> str | None:
    if metadata is None:
        return None
    encode(dict(metadata))
    return json.dumps(dict(metadata))
