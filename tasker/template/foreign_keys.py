"""Keys of other systems, each with what Tasker has instead, and keys without effect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

Ways = tuple[tuple[str, str], ...]
"""Pairs of keys, separated by spaces, and the alternative for them."""

_FAILURE = (
    "write `on_failure: continue`, `on_failure: skip_cascade` or `on_failure: {run: STEP}` on a step that may fail, or "
    "`optional: true`"
)
_IMAGE = "steps run in the workers' own processes; `execution: {mode: process}` gives a handler a process of its own"
_SECRETS = "a template holds no secrets: let the handler read os.environ"

OF_TEMPLATES: Ways = (
    (
        "schedule schedule_interval cron crons timetable trigger triggers on start_date end_date catchup backfill "
        "every",
        'write `schedules: [{name: nightly, cron: "0 2 * * *"}]`',
    ),
    ("tasks jobs nodes stages states activities dag spec workflow", "list the steps under `steps`"),
    (
        "inputs input parameters params args arguments variables vars",
        "describe the input as JSON Schema under `input_schema`; handlers read it with @inputs",
    ),
    ("id workflow_id dag_id", "write `name`"),
    ("api_version kind entrypoint templates", "a template has `name`, `namespace_name`, `version` and `steps`"),
    (
        "default_args task_defaults plugin_defaults step_defaults retry retries env environment",
        "write `defaults: {retry: {...}, timeout_seconds: ...}` for all steps, or it on each step; "
        "`environments: {NAME: {steps: [{name: ALL, ...}]}}` overrides it for all of them",
    ),
    (
        "max_active_tasks max_parallel parallelism queue pool runs_on",
        "workers serve a namespace and bound what they run side by side (`max_concurrent_handlers`, --concurrency); "
        "`tasker pause` holds a template",
    ),
    ("max_active_runs max_concurrent_runs concurrency_limit singleton", "write `concurrency: {limit: 1}`"),
    (
        "timeout timeout_minutes timeout_seconds dagrun_timeout active_deadline_seconds",
        "write `deadline: 3h` for the task, or `timeout_seconds` on the steps",
    ),
    (
        "on_error on_success on_failure_callback errors listeners hooks notifications",
        _FAILURE,
    ),
    ("on_exit teardown always", "write `finally: [STEP]`: the step runs however the task ends"),
    ("tags labels annotations owner author", "put it under `metadata`, for example `metadata: {tags: [a]}`"),
    ("outputs output results returns", "a task's results are those of its steps: what their handlers return"),
    ("image container volumes resources permissions", _IMAGE),
    ("secrets", _SECRETS),
    ("priority_weight weight urgency", "write `priority: high`, or give it with the task: `--priority`"),
)

OF_STEPS: Ways = (
    (
        "needs depends upstream after wait_for upstream_tasks run_after",
        "write `dependencies: [STEP]`",
    ),
    (
        "uses run script command cmd action operator python_callable task task_ref function call code job",
        'write a function under @step_handler("NAME") in handlers.py and name it: `handler: NAME`',
    ),
    ("template", "add `type: task` to start a task of that template; a step that runs code has `handler: NAME`"),
    (
        "if unless condition conditions run_if skip_if trigger_rule",
        'write `when: "EXPRESSION"`, such as `when: "steps.quote.amount > 0"`',
    ),
    (
        "switch case cases choice choices branch",
        "a step with `rules` decides: `rules: [{when: EXPRESSION, then: [STEP]}, {else: [STEP]}]`",
    ),
    (
        "matrix strategy foreach loop items each map expand parallel repeat while until with_items with_param "
        "with_sequence",
        "write `for_each: {in: input.items, as: item}`, which runs the step for each item of a list; steps that do not "
        "depend on each other run at the same time anyway",
    ),
    (
        "with args arguments kwargs op_args op_kwargs params parameters env vars variables config settings",
        "fixed settings stand under `handler: {callable: ..., initialization: {...}}`; what differs from task to task "
        "stands under `inputs`",
    ),
    (
        "retries max_retries max_attempt retry_count retry_limit retry_strategy retry_policy",
        "write `retry: {max_attempts: N}`, which counts the first run, too",
    ),
    (
        "retry_delay retry_delay_seconds retry_interval retry_exponential_backoff max_retry_delay",
        "write `retry: {backoff_base_ms: ..., max_backoff_ms: ...}`",
    ),
    (
        "timeout timeout_minutes execution_timeout deadline active_deadline_seconds start_to_close_timeout",
        "write `timeout_seconds`",
    ),
    (
        "on_error on_success on_failure_callback on_success_callback continue_on continue_on_error "
        "allow_failure ignore_errors catch errors fallback hooks",
        _FAILURE,
    ),
    ("rollback undo compensation saga", "write `compensate: {handler: ...}`, and `on_failure: compensate`"),
    (
        "finally teardown always",
        "name the step in `finally: [STEP]` of the template: it runs however the task ends",
    ),
    (
        "next then goto transitions transition end",
        "order follows from `dependencies`: name this step there in the next one",
    ),
    (
        "outputs output register save_as result returns artifacts do_xcom_push",
        "what the handler returns is the step's result; steps below read it with @depends_on",
    ),
    (
        "max_active_tis_per_dag max_concurrency concurrency_limit concurrency_key semaphore synchronization mutex pool",
        "write `concurrency: {key: input.customer.id, limit: 5}`; what templates share: `limits: [payment_api]`",
    ),
    ("rate throttle throttling rate_limits requests_per_second", "write `rate_limit: {rate: 100/s}`"),
    (
        "queue worker runs_on node_selector worker_group tags labels",
        "the template's namespace says which workers run a step, and `requires: [gpu]` which tags these must have; "
        "they bound what they run side by side (`max_concurrent_handlers`, --concurrency)",
    ),
    (
        "priority priority_weight weight",
        "the whole task has a priority: `priority: high` in the template, or `--priority` with the task",
    ),
    (
        "cache cache_key cache_policy memo",
        "write `effect: pure` and `memoize: {ttl: 1h}`: the step then uses the result of an earlier task",
    ),
    (
        "sleep wait timer start_delay delay_seconds wait_seconds countdown eta run_at start_at schedule_date",
        "write `delay: 5m`, or `not_before: TIME` for a time, also one in the data: `not_before: input.starts_at`; a "
        "step that only waits is `type: wait` with `for: 3d` or `until: input.starts_at`",
    ),
    (
        "pause suspend approval manual",
        "a step that waits for a person is `type: approval`; `tasker pause` holds steps of any type",
    ),
    ("schedule cron trigger", "a step runs when its `dependencies` are complete; no task starts by itself"),
    ("steps subworkflow sub_workflow sub_flow child", "write all steps in one list; a handler may submit another task"),
    ("image container volumes resources", _IMAGE),
    ("secrets", _SECRETS),
    ("id key", "write `name`"),
)

OF_RETRIES: Ways = (
    (
        "retries attempts max max_retries count times maximum_attempts",
        "write `max_attempts`, which counts the first run, too",
    ),
    ("delay interval initial_interval wait delay_seconds", "write `backoff_base_ms`"),
    ("max_interval maximum_interval max_backoff", "write `max_backoff_ms`"),
    ("multiplier factor backoff_coefficient backoff_factor", "write `backoff_multiplier`"),
    ("increment increment_seconds step", "write `increment_ms`"),
    ("max_elapsed_time max_elapsed_seconds total_timeout retry_timeout max_duration", "write `max_elapsed: 10m`"),
    (
        "on when if retry_on conditions retryable_errors non_retryable_errors non_retryable_error_types",
        "write `only_on: [ERROR]` or `never_on: [ERROR]`; a handler raises PermanentError or RetryableError",
    ),
)


def instead(key: str, ways: Ways) -> str | None:
    """Return the alternative for a foreign key, or None. `timeout-minutes` and `timeoutMinutes` are the same key."""
    return _table(ways).get(_plain(key))


def _table(ways: Ways) -> Mapping[str, str]:
    return {key: way for keys, way in ways for key in keys.split()}


def _plain(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").lower()


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
