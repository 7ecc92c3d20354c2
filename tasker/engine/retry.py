"""Decision whether and when a failed attempt is repeated, and fingerprints of failures."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from tasker.dataclasses import dataclass
from tasker.handlers.claims import Failure
from tasker.template.names import MAX_ATTEMPTS, MAX_SECONDS
from tasker.template.plan import RetryPolicy

MAX_RETRY_AFTER_SECONDS = MAX_SECONDS
"""Maximum of `retry_after`: a longer delay is a mistake in the unit and would not fit a timestamp."""


class FailReason(StrEnum):
    """Reason why there is no further attempt."""

    NOT_RETRYABLE = "not_retryable"
    RETRY_DISABLED = "retry_disabled"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"


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


def decide_failure(policy: RetryPolicy, attempt: int, failure: Failure, random: float) -> Retry | Fail:
    """Decide what follows the failure of execution number `attempt` (from 1).

    `random` in [0.0, 1.0) selects the delay within the policy's jitter. The failure's own `retry_after` (seconds)
    overrides the policy's delay and is not capped by its maximum.
    """
    if not failure.retryable:
        return Fail(FailReason.NOT_RETRYABLE, "the failure is permanent")
    if not policy.retryable:
        return Fail(FailReason.RETRY_DISABLED, "the step's retry policy says retryable: false")
    if not is_eligible(attempt, policy.retryable, policy.max_attempts):
        return Fail(FailReason.ATTEMPTS_EXHAUSTED, f"attempt {attempt} of {max(1, policy.max_attempts)} failed")
    if failure.retry_after is None:
        return Retry(delay_ms(policy, attempt, random))
    return _requested(failure.retry_after) or Retry(
        delay_ms(policy, attempt, random),
        f"retry_after {failure.retry_after!r} is not a number of seconds from 0; the step's backoff applies",
    )


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
