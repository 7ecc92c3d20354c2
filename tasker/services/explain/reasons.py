"""Reasons why a step does not run, each with a sentence and a remedy. Pure.

`{name}` is replaced by a word (`tasker.services.explain.wording`); a part in brackets is omitted if one of its words is
missing. The keys are those returned by `tasker.explain_v1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tasker.contracts.dataclasses import dataclass

OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
WORD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. `remedy` says what would change it, with commands to copy."""

    sentence: str
    remedy: str
    needs_somebody: bool = False
    """True if nothing changes until an operator, or a process that an operator starts, acts."""
    by_any_process: bool = False
    """True if any worker or orchestrator resolves it: an operator is needed only while none is running."""


NOBODY_AT_WORK: Final = "no process is at work that would see to it: start tasker worker or tasker orchestrator"

REASONS: Final[Mapping[str, Reason]] = {
    "failed": Reason(
        "failed in attempt {attempt} of {max_attempts}[: {error}]",
        "when the cause is mended, let it run again: tasker task {again}{db}",
        needs_somebody=True,
    ),
    "blocked": Reason(
        "waits for {parents}; {failed} will not complete by itself",
        "what failed is to be mended: tasker task retry {task}{db}",
        needs_somebody=True,
    ),
    "waits": Reason("waits for {parents}", "it runs as soon as nothing above it is left"),
    "running": Reason(
        "running on worker {worker} since {started_at}[, attempt {attempt} of {max_attempts}]"
        "[, until {deadline_at} at the latest][, lease until {lease_until}]",
        "it goes on by itself; to stop it: tasker task cancel {task}{db}",
    ),
    "overrun": Reason(
        "running on worker {worker} since {started_at}, and its time was over at {deadline_at}",
        "a sweep takes it from its worker within seconds; what it brings later is refused",
        by_any_process=True,
    ),
    "lost": Reason(
        "was running on worker {worker}, which is gone[: its lease was over at {lease_until}]",
        "a sweep takes it back within seconds, and it is tried again unless `on_worker_lost: fail` forbids it",
        by_any_process=True,
    ),
    "retry": Reason(
        "back-off until {due_at} after attempt {attempt} of {max_attempts}[, which failed with {error}]",
        "it runs again then, by itself",
        by_any_process=True,
    ),
    "deferred": Reason(
        "{why} until {due_at}",
        "it is tried again then; no attempt is used. The cause is what the breaker stands in front of",
        by_any_process=True,
    ),
    "overdue": Reason(
        "due[ since {due_at}] and not enqueued yet, after attempt {attempt} of {max_attempts}"
        "[, which failed with {error}]",
        "any process at work enqueues it within a second",
        by_any_process=True,
    ),
    "paused": Reason(
        "paused by {actor}[ because {because}]: {target}, since {paused_at}",
        "to end the pause: {resume}{db}",
        needs_somebody=True,
    ),
    "pause_over": Reason(
        "was held by a pause that is over", "the next claim, or a sweep, puts it into the queue", by_any_process=True
    ),
    "nobody": Reason(
        "no live worker serves {handlers}: nobody is at work in the namespace {namespace}[, {draining} about to stop]",
        "start one: tasker worker --namespace {namespace} --handlers MODULE{db}",
        needs_somebody=True,
    ),
    "unserved": Reason(
        "no live worker serves {handlers}: refused by {refused_by}[, last since {refused_since}]",
        "start a worker that has it; who has which handlers: tasker worker list --callables{db}",
        needs_somebody=True,
    ),
    "unreadable": Reason(
        "left to workers of a newer release, which has stored its template: {refused_by} cannot read it"
        "[, last since {refused_since}]",
        "bring workers of {namespace} up to that release; who has which: tasker worker list{db}",
        needs_somebody=True,
    ),
    "not_queued": Reason(
        "ready since {since}, and not in the queue yet", "a sweep puts it there within seconds", by_any_process=True
    ),
    "held": Reason(
        "held behind {ahead} of {namespace}[; {enqueued} in its queue already (enqueue window)]",
        "it goes on as the queue drains: sooner with more workers, a higher priority, a larger enqueue_window",
    ),
    "no_slots": Reason(
        "queued since {since}, not claimed: no free slots, {busy} of {slots} taken on {workers}"
        "[; {enqueued} in the queue]",
        "the next free slot takes what is in the queue; more workers, or more slots in them, make it sooner",
    ),
    "asleep": Reason(
        "queued since {since}, not claimed: no worker awake, asleep: {workers}[; message sent at {hinted_at}]",
        "workers look by themselves, and a sweep sends the message again within seconds",
        by_any_process=True,
    ),
    "queued": Reason(
        "queued since {since}, not claimed yet: {free} on {workers}[; {enqueued} in the queue]"
        "[; message sent at {hinted_at}]",
        "the next look of a worker takes it; a message that was lost is sent again by a sweep",
        by_any_process=True,
    ),
    "parked": Reason(
        "its result is stored since {since} and waits for an orchestrator",
        "an orchestrator ends it; when its message was lost, a sweep does",
        by_any_process=True,
    ),
    "parked_alone": Reason(
        "its result is stored since {since}: parked, no orchestrator at work",
        "start one: tasker orchestrator{db}",
        needs_somebody=True,
    ),
    "result_paused": Reason(
        "its result is stored since {since}: {target} is paused by {actor}[ because {because}], since {paused_at}",
        "to end the pause: {resume}{db}",
        needs_somebody=True,
    ),
    "refused": Reason(
        "a result of worker {worker} was refused at {at} ({verdict}): its claim had ended before",
        "it counts for nothing, and the step goes on as the other lines say",
    ),
    "not_created": Reason(
        "not created yet: it comes with {parents}", "it is created if what comes before it asks for it"
    ),
    "not_chosen": Reason("not created: {parents} did not ask for it", "nothing: it is no part of this task"),
    "ended": Reason("{state} since {since}", "nothing: it has ended"),
    "unevaluated": Reason(
        "every step has ended, and the task is to be evaluated",
        "a sweep evaluates it within seconds",
        by_any_process=True,
    ),
}


def filled(text: str, words: Mapping[str, str]) -> str:
    """Return the text with its words; a part in brackets is omitted if one of its words is missing or empty."""

    def part(match: re.Match[str]) -> str:
        return match[1] if all(words.get(name) for name in WORD.findall(match[1])) else ""

    return WORD.sub(lambda match: words.get(match[1], "?"), OPTIONAL.sub(part, text))
