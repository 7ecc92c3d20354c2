"""Approvals: decisions of persons for which steps wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from tasker.dataclasses import dataclass
from tasker.redaction import REDACTED, SHORTEST_TEXT, redact_by_schema

Decision = Literal["approved", "rejected"]


@dataclass(frozen=True, slots=True)
class ApprovalVote:
    """Vote of one person. `via` is `api`, `page`, `link` or `program`."""

    by: str
    decision: str
    form: Mapping[str, Any]
    comment: str
    via: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Approval:
    """Open approval of a list.

    `approved` and `rejected` are numbers of votes, of `quorum` that are needed. `subjects` and `permissions` say who
    may decide; without either, everybody with the permission `approvals:decide`. `until` is when its step times out.
    """

    task_uuid: str
    step: str
    step_uuid: str
    namespace: str
    template: str
    description: str | None
    requested_at: datetime
    until: datetime | None
    escalated_at: datetime | None
    quorum: int
    approved: int
    rejected: int
    subjects: Sequence[str]
    permissions: Sequence[str]


@dataclass(frozen=True, slots=True)
class ApprovalDetail(Approval):
    """Approval with all that a person needs to decide.

    `token` tells this request from a later one of the same step. `outcome` is None while it is open, else `approved`,
    `rejected`, `timeout`, or why it ended otherwise. `form` is the JSON Schema of what is filled in, `inputs` is what
    the template shows, `problems` says why one of them has no value. `reject` is `first` or `quorum`.
    """

    token: int
    outcome: str | None
    ended_at: datetime | None
    reject: str
    form: Mapping[str, Any] | None
    inputs: Mapping[str, Any]
    problems: Mapping[str, str]
    votes: Sequence[ApprovalVote]

    def redacted_by(self, redact: Callable[[Any], Any]) -> ApprovalDetail:
        """Return the approval without sensitive values; those of votes are known by the form, also in comments."""
        secrets: set[str] = set()
        forms = [redact_by_schema(self.form, vote.form, secrets) for vote in self.votes]
        votes = [
            replace(vote, form=form, comment=_without(secrets, vote.comment))
            for vote, form in zip(self.votes, forms, strict=True)
        ]
        return replace(self, votes=redact(votes), inputs=redact(self.inputs), problems=redact(self.problems))


def _without(secrets: Collection[str], text: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_TEXT:
            text = text.replace(secret, REDACTED)
    return text


@dataclass(frozen=True, slots=True)
class CountedVote:
    """Answer to a person who decided. `ended`: the step has ended with this vote, as `outcome`; otherwise it waits for
    more votes: `approved` of `quorum` have approved."""

    task_uuid: str
    step: str
    decision: str
    ended: bool
    outcome: str | None
    approved: int
    quorum: int


@dataclass(frozen=True, slots=True)
class ApprovalLink:
    """Signed link with which `subject` decides once, until `expires_at`; a path if no address is configured."""

    url: str
    subject: str
    expires_at: datetime
