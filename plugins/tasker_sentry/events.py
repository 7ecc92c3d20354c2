"""Content of Sentry events. They contain no inputs, results and arguments of handlers."""

from __future__ import annotations

from typing import Any

from tasker.plugins.hook_arguments import AttemptEnded, TaskFinished

Event = dict[str, Any]
LOGGER = "tasker"


def is_final(ended: AttemptEnded) -> bool:
    """Return True if the step is not retried, as far as this attempt knows."""
    return not ended.retryable or ended.attempt.attempt >= ended.attempt.max_attempts


def failure(ended: AttemptEnded, *, messages: bool) -> Event:
    """Return the event of a failed attempt: events of a template's step with the same type of error form one group."""
    attempt, kind = ended.attempt, ended.error_type or "error"
    text = ended.error_message if messages else f"{attempt.step} of {attempt.namespace}/{attempt.template} failed"
    tags = {
        "task": attempt.task_uuid,
        "step": attempt.step,
        "template": attempt.template,
        "namespace": attempt.namespace,
        "attempt": str(attempt.attempt),
        "worker": attempt.worker,
        "handler": attempt.handler,
        "error_type": kind,
    }
    return {
        "level": "error" if is_final(ended) else "warning",
        "logger": LOGGER,
        "exception": {"values": [{"type": kind, "value": text}]},
        "tags": tags,
        "contexts": {"tasker": {**tags, "step_uuid": attempt.step_uuid, "correlation_id": attempt.correlation_id}},
        "fingerprint": [LOGGER, attempt.namespace, attempt.template, attempt.step, kind],
        "transaction": f"{attempt.namespace}/{attempt.template}/{attempt.step}",
    }


def dead_letter(task: TaskFinished, template: tuple[str, str] | None) -> Event:
    """Return the event of a task that ended in error. `template` is its namespace and template, if this process knows
    it."""
    known = {} if template is None else {"namespace": template[0], "template": template[1]}
    what = "/".join(template) if template else "a task"
    return {
        "level": "error",
        "logger": LOGGER,
        "message": f"{what} ended in error and needs a person",
        "tags": {"task": task.task_uuid, **known},
        "fingerprint": [LOGGER, "dead letter", *(template or ())],
    }
