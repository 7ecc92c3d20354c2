"""Keys of the template language that this version ignores, with reason and alternative."""

from __future__ import annotations

from typing import NamedTuple


class IgnoredKey(NamedTuple):
    """Reason why a key is ignored, and the alternative."""

    why: str
    instead: str


SYSTEMS = IgnoredKey(
    "nothing watches or limits outside systems by their names",
    "write `circuit_breaker: {name: ...}` on the steps that depend on one, or remove it",
)
BATCH_SIZE = IgnoredKey(
    "the batchable step's handler cuts the batches",
    "give it the size: `handler: {callable: ..., initialization: {batch_size: ...}}`",
)
PARALLELISM = IgnoredKey(
    "batches run as far as workers have free slots",
    "bound what a worker runs side by side: `max_concurrent_handlers` in its configuration",
)
WORKER_TEMPLATE = IgnoredKey(
    "the handler's outcome names the batch_worker",
    '`@batch_analyzer(..., worker_template="...")`, or `worker_template_name` of the outcome',
)
