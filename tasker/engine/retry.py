"""Decision whether and when a failed attempt is repeated, and fingerprints of failures."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from tasker.dataclasses import dataclass
from tasker.handlers.claims import NO_LIMITS, Failure, RetryTimes
from tasker.template.durations import duration_text
from tasker.template.error_rules import ErrorOverride, matching
from tasker.template.names import MAX_ATTEMPTS, MAX_SECONDS
from tasker.template.plan import RetryPolicy

MAX_RETRY_AFTER_SECONDS = MAX_SECONDS
"""Maximum of `retry_after`: a longer delay is a mistake in the unit and would not fit a timestamp."""


class FailReason(StrEnum):
    """Reason why there is no further attempt."""

    NOT_RETRYABLE = "not_retryable"
    RETRY_DISABLED = "retry_disabled"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    DEADLINE_TOO_NEAR = "deadline_too_near"
    MAX_ELAPSED = "max_elapsed"


@dataclass(frozen=True, slots=True)
class Retry:
    """Decision to run the step again in `delay_ms` milliseconds; `warning` is set if `retry_after` was unusable."""

    delay_ms: int
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """Decision that the step has failed permanently; `message` explains it to people."""

    reason: FailReason
    message: str


def is_eligible(attempts: int | None, retryable: bool | None, max_attempts: int | None) -> bool:
    """Return whether the step may run once more, regardless of backoff.

    `attempts` counts finished executions; None means the defaults 0, True and 3. The first execution is always allowed,
    regardless of `retryable` and `max_attempts`.
    """
    done = attempts or 0
    limit = MAX_ATTEMPTS if max_attempts is None else max_attempts
    return done == 0 or (retryable is not False and done < limit)


def decide_failure(
    policy: RetryPolicy, attempt: int, failure: Failure, random: float, times: RetryTimes = NO_LIMITS
) -> Retry | Fail:
    """Decide what follows the failure of execution number `attempt` (from 1).

    `random` in [0.0, 1.0) selects the delay within the policy's jitter. The failure's own `retry_after` (seconds)
    overrides the policy's delay and is not capped by its maximum. An attempt that could begin only after the deadline
    of the task, or after the policy's `max_elapsed`, is not waited for.
    """
    if not failure.retryable:
        return Fail(FailReason.NOT_RETRYABLE, failure.why or "the failure is permanent")
    if not policy.retryable:
        return Fail(FailReason.RETRY_DISABLED, "the step's retry policy says retryable: false")
    if not is_eligible(attempt, policy.retryable, policy.max_attempts):
        return Fail(FailReason.ATTEMPTS_EXHAUSTED, f"attempt {attempt} of {max(1, policy.max_attempts)} failed")
    retry = _retry(policy, attempt, failure, random)
    return _too_late(retry, policy, times) or retry


NOT_OF_THE_HANDLER = frozenset({"worker_lost", "worker_error", "handler_crash", "checkpoint_save_failed"})
"""Error types of failures that say nothing about what the handler did; `only_on` does not exclude them."""


def classified(failure: Failure, policy: RetryPolicy, overrides: Iterable[ErrorOverride] = ()) -> Failure:
    """Return the failure as retryable or permanent by the first that names it: configuration, template, defaults."""
    for override in overrides:
        if rule := matching((override.error,), failure):
            verb = "retries" if override.retry else "never retries"
            return replace(failure, retryable=override.retry, why=f"the configuration {verb} {rule}")
    if rule := matching(policy.never_on, failure):
        return replace(failure, retryable=False, why=f"retry.never_on names {rule}")
    if not policy.only_on or failure.error_type in NOT_OF_THE_HANDLER:
        return failure
    if rule := matching(policy.only_on, failure):
        by_default = failure.why is not None
        return replace(failure, retryable=True, why=f"retry.only_on names {rule}") if by_default else failure
    return replace(failure, retryable=False, why="retry.only_on does not name it")


OUTCOME_UNKNOWN = "outcome_unknown"
UNKNOWN_OUTCOMES = frozenset(
    {"worker_lost", "handler_timeout", "handler_crash", "memory_exceeded", "killed_its_workers", "deadline_exceeded"}
)
"""Error types of attempts that ended while the handler ran: it may have had its effect."""


def with_unknown_outcome(failure: Failure, known: Mapping[str, Any]) -> Failure:
    """Return the failure of a step with `effect: once` whose handler may have had its effect.

    `known` is what an operator should know of the attempt; it becomes part of the metadata, with the error type.
    """
    message = f"{failure.message}; whether the step had its effect is unknown (effect: once)"
    metadata = {**failure.metadata, "cause": failure.error_type, **known}
    return replace(failure, message=message, error_type=OUTCOME_UNKNOWN, retryable=False, metadata=metadata)


def _retry(policy: RetryPolicy, attempt: int, failure: Failure, random: float) -> Retry:
    if failure.retry_after is None:
        return Retry(delay_ms(policy, attempt, random))
    return _requested(failure.retry_after) or Retry(
        delay_ms(policy, attempt, random),
        f"retry_after {failure.retry_after!r} is not a number of seconds from 0; the step's backoff applies",
    )


def _too_late(retry: Retry, policy: RetryPolicy, times: RetryTimes) -> Fail | None:
    again = f"the next attempt would begin in {duration_text(retry.delay_ms / 1000)}"
    if times.left_ms is not None and retry.delay_ms >= times.left_ms:
        left = f"{duration_text(times.left_ms / 1000)} are left" if times.left_ms > 0 else "nothing is left"
        return Fail(FailReason.DEADLINE_TOO_NEAR, f"{again}, and {left} until the deadline of the task")
    limit = policy.max_elapsed_ms
    if limit is not None and times.ran_ms is not None and times.ran_ms + retry.delay_ms > limit:
        ran, most = duration_text(times.ran_ms / 1000), duration_text(limit / 1000)
        return Fail(FailReason.MAX_ELAPSED, f"{again}, {ran} after the first began; max_elapsed is {most}")
    return None


def _requested(seconds: float) -> Retry | None:
    if not (math.isfinite(seconds) and seconds >= 0):
        return None
    if seconds > MAX_RETRY_AFTER_SECONDS:
        return Retry(MAX_RETRY_AFTER_SECONDS * 1000, f"retry_after {seconds!r} s is cut to {MAX_RETRY_AFTER_SECONDS} s")
    return Retry(math.ceil(seconds * 1000))


def delay_ms(policy: RetryPolicy, failures: int, random: float = 0.5) -> int:
    """Return the milliseconds to wait after failure number `failures` (from 1), at most the policy's maximum.

    With jitter j the delay is uniform from (1 - j) to (1 + j) times the delay without jitter; with full jitter from 0
    to 1 times it. `random` 0.5 is the middle.
    """
    strategy = _listed if policy.delays_ms else _STRATEGIES[policy.backoff]
    plain = min(strategy(policy, failures), policy.max_backoff_ms)
    spread = random if policy.jitter == "full" else 1 + policy.jitter * (2 * random - 1)
    return round(min(plain * spread, policy.max_backoff_ms))


def _listed(policy: RetryPolicy, failures: int) -> float:
    return policy.delays_ms[min(failures, len(policy.delays_ms)) - 1]


def _exponential(policy: RetryPolicy, failures: int) -> float:
    try:
        return policy.backoff_base_ms * float(policy.multiplier) ** (failures - 1)
    except OverflowError:
        return math.inf


def _linear(policy: RetryPolicy, failures: int) -> float:
    increment = policy.backoff_base_ms if policy.increment_ms is None else policy.increment_ms
    return policy.backoff_base_ms + increment * (failures - 1)


def _fibonacci(policy: RetryPolicy, failures: int) -> float:
    """Return the base times 1, 1, 2, 3, 5, 8 ...; the loop ends at the maximum, so any number of failures is cheap."""
    delay, following = policy.backoff_base_ms, policy.backoff_base_ms
    for _ in range(failures - 1):
        if delay >= policy.max_backoff_ms or not following:
            break
        delay, following = following, delay + following
    return delay


def _fixed(policy: RetryPolicy, failures: int) -> float:
    return policy.backoff_base_ms


def _none(policy: RetryPolicy, failures: int) -> float:
    return 0


_STRATEGIES: dict[str, Callable[[RetryPolicy, int], float]] = {
    "exponential": _exponential,
    "linear": _linear,
    "fibonacci": _fibonacci,
    "fixed": _fixed,
    "none": _none,
}

STRATEGIES = tuple(_STRATEGIES)
"""Names that `backoff` may have."""


MESSAGE_LIMIT = 1000
"""Number of characters of a message that are compared."""
LENGTH = 16
"""Number of hexadecimal digits of a fingerprint."""

_VARYING = re.compile(
    r"(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?)"
    r"|(?P<text>'[^'\n]*'|\"[^\"\n]*\")"
    r"|(?P<hex>\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b)"
    r"|(?P<n>[+-]?\d+(?:[.,]\d+)*)"
)


def fingerprint(error: Mapping[str, Any], place: str | None = None) -> str:
    """Return the fingerprint of a stored failure, sixteen hexadecimal digits.

    It covers the type of the exception, the `place` where it was raised (file and function, without the line, which
    changes with every edit), and the message without variable parts. A failure without an exception uses its error type
    and its handler instead.
    """
    metadata = error.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    kind = metadata.get("exception_type") or error.get("error_type")
    place = place or error.get("handler")
    text = "\n".join(
        str(part or "") for part in (kind, place, error.get("error_code"), normalized(error.get("message")))
    )
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:LENGTH]


def normalized(message: Any) -> str:
    """Return the message with placeholders in place of identifiers, times, quoted texts and numbers."""
    text = " ".join(str(message or "")[:MESSAGE_LIMIT].lower().split())
    return _VARYING.sub(lambda match: f"<{match.lastgroup}>", text)
