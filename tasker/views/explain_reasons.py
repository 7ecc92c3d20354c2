"""Reasons why a step does not run, each with a sentence and a remedy. Pure.

`{name}` is replaced by a word (`tasker.views.explanation`); a part in brackets is omitted if one of its words is
missing. The keys are those returned by `tasker.explain_v1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tasker.dataclasses import dataclass

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


NOBODY_AT_WORK: Final = "no running process can handle it: start tasker worker or tasker orchestrator"

REASONS: Final[Mapping[str, Reason]] = {
    "failed": Reason(
        "failed in attempt {attempt} of {max_attempts}[: {error}]",
        "when the cause is fixed, run it again: tasker task {again}{db}",
        needs_somebody=True,
    ),
    "unknown": Reason(
        "runs only once, and the outcome of attempt {attempt} is unknown[: {error}]",
        "find out whether it had its effect, then: tasker task step complete {task} {step} --result JSON{db}; or, "
        "to run it again: tasker task step reset {task} {step}{db}",
        needs_somebody=True,
    ),
    "blocked": Reason(
        "waits for {parents}; {failed} cannot complete without an operator",
        "fix the cause, then retry the failed steps: tasker task retry {task}{db}",
        needs_somebody=True,
    ),
    "waits": Reason("waits for {parents}", "it runs when all of its dependencies are complete"),
    "running": Reason(
        "running on worker {worker} since {started_at}[, attempt {attempt} of {max_attempts}]"
        "[, until {deadline_at} at the latest][, lease until {lease_until}]",
        "no action needed; to stop it: tasker task cancel {task}{db}",
    ),
    "overrun": Reason(
        "running on worker {worker} since {started_at}, and its timeout expired at {deadline_at}",
        "a sweep releases its claim within seconds; a late result is refused",
        by_any_process=True,
    ),
    "lost": Reason(
        "was running on worker {worker}, which is gone[: its lease expired at {lease_until}]",
        "a sweep releases its claim within seconds, and it is retried unless `effect` or `on_worker_lost` forbids it",
        by_any_process=True,
    ),
    "retry": Reason(
        "back-off until {due_at} after attempt {attempt} of {max_attempts}[, which failed with {error}]",
        "it is retried then",
        by_any_process=True,
    ),
    "deferred": Reason(
        "{why} until {due_at}",
        "it is retried then, without using an attempt; check the service that the circuit breaker protects",
        by_any_process=True,
    ),
    "snoozed": Reason(
        "its handler asked to be called again at {due_at}[: {why}]",
        "it is called then, without using an attempt",
        by_any_process=True,
    ),
    "overdue": Reason(
        "due[ since {due_at}] and not enqueued yet, after attempt {attempt} of {max_attempts}"
        "[, which failed with {error}]",
        "any process at work enqueues it within a second",
        by_any_process=True,
    ),
    "scheduled": Reason(
        "scheduled: its task was submitted to begin at {due_at}",
        "it begins then; to drop it: tasker task cancel {task}{db}",
        by_any_process=True,
    ),
    "debounced": Reason(
        "debounced: submissions of the same key are merged into its task until it begins at {due_at}"
        "[, at the latest at {latest_at}][; submissions so far: {submits}]",
        "it begins then; to drop it: tasker task cancel {task}{db}",
        by_any_process=True,
    ),
    "delayed": Reason("delayed until {due_at} by its `delay` or `not_before`", "it begins then", by_any_process=True),
    "late": Reason(
        "was to begin at {due_at} and is not enqueued yet",
        "any process at work enqueues it within seconds",
        by_any_process=True,
    ),
    "waits_time": Reason(
        "waits until {due_at}",
        "it ends then; to end it now: tasker task step complete {task} {step} --result '{}'{db}",
        by_any_process=True,
    ),
    "waits_event": Reason(
        "waits for the event {event}[ with the key {key}][ until {due_at}][; {taken} came]"
        "[; the payloads of {refused} did not fit, the last because {problem}]",
        "it ends with the event: tasker events send {namespace} {event}[ --key {key}] --payload '{}'{db}",
    ),
    "waits_person": Reason(
        "waits for a person: {approvals} of {quorum} approved[, {rejections} rejected][; may decide: {approvers}]"
        "[; until {due_at}]",
        "it ends with the decision: tasker approval decide {task} {step} --approve{db}",
    ),
    "waits_task": Reason(
        "waits for [{left} of {total} ]child tasks[; {running} run][; {failures} failed, {tolerated} tolerated]",
        "they end first; to see them: tasker task children {task}{db}",
        by_any_process=True,
    ),
    "wait_over": Reason(
        "waited until {due_at}, and its wait has not ended yet",
        "any process at work ends it within seconds",
        by_any_process=True,
    ),
    "not_waiting": Reason("its wait was lost", "a sweep begins it anew within seconds", by_any_process=True),
    "dated": Reason(
        "the task has a deadline: what is open at {ends_at} fails",
        "nothing changes it; to continue afterwards: tasker task retry {task}{db}",
    ),
    "limited": Reason(
        "waits for a permit of the limit {limit}[, key {value}]: {running} of {most} run[, in the tasks {holders}]"
        "[; {before} before it]",
        "it starts when one of them ends and its turn comes; limits and who waits: tasker limit list{db}",
    ),
    "rated": Reason(
        "waits for its turn under the limit {limit}[, key {value}]: {rate} attempts per second[; {before} before it]",
        "it starts when its turn comes; limits and who waits: tasker limit list{db}",
    ),
    "paused": Reason(
        "paused by {actor}[ because {because}]: {target}, since {paused_at}",
        "to end the pause: {resume}{db}",
        needs_somebody=True,
    ),
    "pause_over": Reason(
        "was paused by a pause that has ended",
        "the next claim, or a sweep, puts it into the queue",
        by_any_process=True,
    ),
    "untagged": Reason(
        "no live worker of the namespace {namespace} has the tag {tags}: refused by {refused_by}"
        "[, last since {refused_since}]",
        "start one that has it: tasker worker --namespace {namespace} --tags {tags} --handlers MODULE{db}",
        needs_somebody=True,
    ),
    "oversized": Reason(
        "needs {needed} slots, and no live worker of the namespace {namespace} has more than {most}",
        "start one with more: tasker worker --namespace {namespace} --concurrency {needed} --handlers MODULE{db}",
        needs_somebody=True,
    ),
    "nobody": Reason(
        "no live worker serves {handlers}: no worker is running in the namespace {namespace}[, {draining} "
        "about to stop]",
        "start one: tasker worker --namespace {namespace} --handlers MODULE{db}",
        needs_somebody=True,
    ),
    "unserved": Reason(
        "no live worker serves {handlers}[ (missing resource: {lacking})]: refused by {refused_by}"
        "[, last since {refused_since}]",
        "start a worker that has the handler[ (plugin {plugin})][ and the resource {lacking}]; list handlers by "
        "worker: tasker worker list --callables{db}",
        needs_somebody=True,
    ),
    "unreadable": Reason(
        "left to workers of a newer release, which has stored its template: {refused_by} cannot read it"
        "[, last since {refused_since}]",
        "upgrade the workers of {namespace} to that release; list versions: tasker worker list{db}",
        needs_somebody=True,
    ),
    "not_queued": Reason(
        "ready since {since}, and not in the queue yet", "a sweep puts it there within seconds", by_any_process=True
    ),
    "held": Reason(
        "in the backlog behind {ahead} of {namespace}[; {enqueued} in its queue already (enqueue window)]",
        "it starts as the queue drains; more workers, a higher priority or a larger enqueue_window speed it up",
    ),
    "outranked": Reason(
        "waits for a free slot since {since}[, behind {before} of {namespace} that are more urgent or older]"
        "[; its flow {flow} is served in turn with others][; {free} on {workers}]",
        "it starts as slots get free; more workers, more slots or a higher priority speed it up",
    ),
    "no_slots": Reason(
        "queued since {since}, not claimed: no free slots, {busy} of {slots} taken on {workers}"
        "[; {enqueued} in the queue]",
        "it starts when a slot is free; more workers or more slots speed it up",
    ),
    "asleep": Reason(
        "queued since {since}, not claimed: no worker awake, asleep: {workers}[; message sent at {hinted_at}]",
        "workers poll, and a sweep sends the message again within seconds",
        by_any_process=True,
    ),
    "queued": Reason(
        "queued since {since}, not claimed yet: {free} on {workers}[; {enqueued} in the queue]"
        "[; message sent at {hinted_at}]",
        "a worker claims it at its next poll; a sweep resends lost messages",
        by_any_process=True,
    ),
    "parked": Reason(
        "its result is stored since {since} and waits for an orchestrator",
        "an orchestrator completes it, or a sweep if its message was lost",
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
        "the refused result is ignored; the other lines show the state of the step",
    ),
    "not_created": Reason(
        "not created yet: depends on the decision of {parents}", "it is created if the decision names it"
    ),
    "not_chosen": Reason("not created: {parents} did not name it", "nothing: it is not part of this task"),
    "decided_against": Reason(
        "not created: {decision} did not create {branch}[, because: {why}]", "nothing: it is not part of this task"
    ),
    "tolerated": Reason(
        "failed in attempt {attempt} of {max_attempts}[: {error}]; the task went on without it",
        "to run it again with everything below it: tasker task rerun {task} --from STEP{db}",
    ),
    "skipped": Reason(
        "skipped since {since}: {failed} failed, and `on_failure` skips what depends on it",
        "to run it after all: tasker task rerun {task} --from {failed}{db}",
    ),
    "undone": Reason(
        "does not run in this task any more: its effects are undone, or are being undone",
        "to run it in a new task: tasker task rerun {task} --from STEP{db}",
    ),
    "at_rest": Reason(
        "not created: a step of `finally`, or a compensation, which runs when the other steps have come to rest",
        "no action needed",
    ),
    "not_failed": Reason("not created: it runs only if {parents} fails", "no action needed"),
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
