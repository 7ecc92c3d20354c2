"""Operations of dead letters and replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from tasker.dataclasses import dataclass
from tasker.operations.operation import Body, Endpoint, Param, RemoteService
from tasker.operations.permissions import Permission
from tasker.operations.steps import RETRY, Actor, Why
from tasker.views.dead_letters import (
    DeadLetter,
    FailureGroup,
    InvestigationUpdated,
    QueuedInvestigation,
    ReasonStats,
    Replay,
    ReplayPlan,
    TaskHealth,
)
from tasker.views.steps import RetriedSteps

MOST_TASKS = 100_000
"""Maximum number of tasks of one replay."""
RATES = (0.001, 1000.0)
"""Bounds of the rate of a replay, in tasks per second."""

Name = Annotated[str | None, Param(max_length=255)]
Word = Annotated[str | None, Param(max_length=64)]
Limit = Annotated[int, Param(at_least=1, at_most=500)]
Entry = Annotated[str, Param("dlq_entry_uuid", description="The entry's identifier.")]
ReplayUuid = Annotated[str, Param(description="The replay's identifier.", max_length=64)]
Steered = Literal["running", "paused", "cancelled"]


@dataclass(frozen=True, slots=True)
class FailureSelection:
    """Selection of pending entries; conditions that are None do not apply.

    With a fingerprint only the steps with that failure are reset, else every failed step.
    """

    fingerprint: Annotated[str | None, Param(max_length=64, description="Only the steps that failed so run again.")] = (
        None
    )
    namespace: Name = None
    template: Name = None
    reason: Word = None
    since: datetime | None = None
    limit: Annotated[int, Param(at_least=1, at_most=MOST_TASKS)] = MOST_TASKS

    @property
    def is_limited(self) -> bool:
        """True if any condition applies."""
        return any((self.fingerprint, self.namespace, self.template, self.reason, self.since))


class DeadLetterOperations:
    """Operations of dead letters, as clients have them."""

    @Endpoint("GET", "/v1/dlq", Permission.DLQ_READ, "dead_letters.list", confines=True)
    async def list_dead_letters(
        self,
        *,
        status: Annotated[str | None, Param("resolution_status", max_length=64)] = None,
        reason: Word = None,
        namespace: Name = None,
        template: Name = None,
        fingerprint: Word = None,
        limit: Limit = 50,
        offset: Annotated[int, Param(at_least=0, at_most=10_000_000)] = 0,
    ) -> Sequence[DeadLetter]:
        """Return entries, newest first."""

    @Endpoint("GET", "/v1/dlq/stats", Permission.DLQ_STATS, "dead_letters.stats")
    async def dead_letter_stats(self) -> Sequence[ReasonStats]:
        """Return counts for each reason that has entries."""

    @Endpoint("GET", "/v1/dlq/investigation-queue", Permission.DLQ_READ, "dead_letters.queue", confines=True)
    async def investigation_queue(self, *, limit: Limit = 100) -> Sequence[QueuedInvestigation]:
        """Return pending entries, most urgent first."""

    @Endpoint("GET", "/v1/dlq/staleness", Permission.DLQ_READ, "dead_letters.staleness", confines=True)
    async def staleness(self, *, limit: Limit = 100) -> Sequence[TaskHealth]:
        """Return open tasks by staleness: stale ones, then warnings, then healthy ones."""

    @Endpoint("GET", "/v1/dlq/groups", Permission.DLQ_READ, "dead_letters.groups", confines=True)
    async def dead_letter_groups(self, *, limit: Limit = 50) -> Sequence[FailureGroup]:
        """Return pending entries grouped by failure, largest group first."""

    @Endpoint("GET", "/v1/dlq/task/{task_uuid}", Permission.DLQ_READ, "dead_letters.of_task", errors=(404,))
    async def get_dead_letter(
        self, task_uuid: Annotated[str, Param(description="The task's identifier.")]
    ) -> DeadLetter:
        """Return the newest entry of a task, with a snapshot of the task at that time.

        Raises `DeadLetterNotFound`.
        """

    @Endpoint(
        "GET", "/v1/dlq/entry/{dlq_entry_uuid}", Permission.DLQ_READ, "dead_letters.entry", confines=True, errors=(404,)
    )
    async def get_dead_letter_entry(self, entry_uuid: Entry) -> DeadLetter:
        """Return one entry, with a snapshot of its task at that time.

        Raises `DeadLetterNotFound`.
        """

    @Endpoint(
        "POST",
        "/v1/dlq",
        Permission.DLQ_UPDATE,
        "dead_letters.open",
        confines=True,
        operates=True,
        body=Body("OpenInvestigationRequest", "Task to investigate and the reason."),
        status=201,
        errors=(404,),
    )
    async def open_dead_letter(
        self,
        task_uuid: Annotated[str, Param(max_length=64)],
        *,
        reason: Annotated[str, Param(max_length=64)] = "manual_dlq",
        notes: Annotated[str | None, Param(max_length=100_000)] = None,
        actor: Name = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> DeadLetter:
        """Add a dead letter for a task as an operator; the task itself continues. 400 if it already has a pending
        entry.

        Raises `TaskNotFound`, and `StateMachineError` if the task already has a pending entry.
        """

    @Endpoint(
        "PATCH",
        "/v1/dlq/entry/{dlq_entry_uuid}",
        Permission.DLQ_UPDATE,
        "dead_letters.update",
        confines=True,
        operates=True,
        body=Body("UpdateInvestigationRequest", "Result of an investigation; omitted fields stay unchanged."),
        errors=(404,),
    )
    async def update_dead_letter(
        self,
        entry_uuid: Entry,
        *,
        status: Annotated[
            str | None, Param("resolution_status", description="`ManuallyResolved` or `manually_resolved`, and so on.")
        ] = None,
        notes: Annotated[str | None, Param("resolution_notes", max_length=100_000)] = None,
        resolved_by: Name = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> InvestigationUpdated:
        """Store the result of the investigation and close the entry. Its task stays unchanged.

        Raises `DeadLetterNotFound`.
        """

    @Endpoint(
        "POST",
        "/v1/dlq/entry/{dlq_entry_uuid}/retry",
        Permission.STEPS_RESOLVE,
        "dead_letters.retry",
        confines=True,
        operates=True,
        body=RETRY,
        errors=(404,),
    )
    async def retry_dead_letter(
        self,
        entry_uuid: Entry,
        *,
        reason: Why = "",
        actor: Actor = None,
    ) -> RetriedSteps:
        """Run every failed step of the entry's task again and close the entry, all or nothing. Also needs `dlq:update`.

        If no step runs again, the entry stays unchanged. 400 for a cancelled task.

        Raises `DeadLetterNotFound`, and `StateMachineError` for a cancelled task.
        """

    @Endpoint("GET", "/v1/dlq/replays", Permission.DLQ_READ, "replays.list")
    async def list_replays(self, *, limit: Limit = 50) -> Sequence[Replay]:
        """Return replays, newest first."""

    @Endpoint("GET", "/v1/dlq/replays/{replay_uuid}", Permission.DLQ_READ, "replays.get", errors=(404,))
    async def get_replay(self, replay_uuid: ReplayUuid) -> Replay:
        """Return a replay with its progress.

        Raises `DeadLetterNotFound`.
        """

    @Endpoint(
        "POST",
        "/v1/dlq/replays",
        Permission.STEPS_RESOLVE,
        "replays.begin",
        operates=True,
        unless="dry_run",
        body=Body(
            "BeginReplayRequest",
            "Selection of pending entries to replay and the rate; omitted filters match everything. `all` selects "
            "every\nentry.",
        ),
    )
    async def begin_replay(
        self,
        group: FailureSelection,
        *,
        all: bool = False,
        rate: Annotated[
            float, Param("rate_per_second", at_least=RATES[0], at_most=RATES[1], description="Tasks per second.")
        ] = 10.0,
        reason: Annotated[str, Param("note", max_length=100_000)] = "",
        actor: Name = None,
        dry_run: bool = False,
    ) -> ReplayPlan:
        """Run the failed steps of a group of entries again, at a set number of tasks per second. `dry_run` changes
        nothing.

        The answer has no `replay_uuid` if there is nothing to replay.
        """

    @Endpoint(
        "PATCH",
        "/v1/dlq/replays/{replay_uuid}",
        Permission.STEPS_RESOLVE,
        "replays.steer",
        operates=True,
        body=Body("SteerReplayRequest", "Requested state of a replay."),
        errors=(404,),
    )
    async def steer_replay(self, replay_uuid: ReplayUuid, state: Steered) -> Replay:
        """Pause, resume or cancel a replay; replayed tasks stay replayed. Refused if it has ended.

        Raises `DeadLetterNotFound`, and `StateMachineError` if it has ended.
        """


class RemoteDeadLetters(RemoteService):
    """Dead letters of a server, under the names of `tasker.services.operators.dead_letters.DeadLetters`."""

    list = DeadLetterOperations.list_dead_letters
    of_task = DeadLetterOperations.get_dead_letter
    entry = DeadLetterOperations.get_dead_letter_entry
    stats = DeadLetterOperations.dead_letter_stats
    queue = DeadLetterOperations.investigation_queue
    staleness = DeadLetterOperations.staleness
    groups = DeadLetterOperations.dead_letter_groups
    open = DeadLetterOperations.open_dead_letter
    retry = DeadLetterOperations.retry_dead_letter


class RemoteReplays(RemoteService):
    """Replays of a server, under the names of `tasker.services.operators.replays.Replays`."""

    list = DeadLetterOperations.list_replays
    get = DeadLetterOperations.get_replay
    steer = DeadLetterOperations.steer_replay
