"""Table of all keys of a template, the source of the reader, the JSON Schema and the reference."""

from __future__ import annotations

from tasker.template.attempt_keys import ATTEMPTS_OF_STEPS
from tasker.template.child_keys import CHILD_KEYS
from tasker.template.condition_keys import CONDITION_KEYS
from tasker.template.failure_keys import FAILURES_OF_STEPS, FAILURES_OF_TEMPLATES
from tasker.template.foreign_keys import (
    BATCH_SIZE,
    OF_RETRIES,
    OF_STEPS,
    OF_TEMPLATES,
    PARALLELISM,
    SYSTEMS,
    WORKER_TEMPLATE,
)
from tasker.template.limit_keys import (
    CONCURRENCY,
    FAIRNESS,
    NAMED_LIMIT,
    NEEDS_OF_WORKERS,
    RATE_LIMIT,
    TASK_CONCURRENCY,
)
from tasker.template.mapping import Key, Mapping, SchemaKey
from tasker.template.names import (
    HIGHEST_MAX_ATTEMPTS,
    JITTER_SHARE,
    MAX_COUNT,
    MAX_MILLISECONDS,
    MAX_MINUTES,
    MAX_MULTIPLIER,
    MAX_NAME,
    MAX_SECONDS,
    NAME,
    NAME_RULE,
    VERSION,
    VERSION_RULE,
)
from tasker.template.plan import RetryPolicy
from tasker.template.retry import RETRY_PROFILES
from tasker.template.schedules import SCHEDULE
from tasker.template.step_types import DEFAULT, WAITING, StepType
from tasker.template.submission_keys import OF_SUBMISSIONS
from tasker.template.times import Duration, StartTime
from tasker.template.value_kinds import (
    Boolean,
    Choice,
    ErrorName,
    Fraction,
    Free,
    Inputs,
    ListOf,
    MapOf,
    Number,
    Priority,
    Text,
    Verbatim,
    Version,
)
from tasker.template.wait_keys import WAIT_KEYS

NAMESPACE = r"(?!orchestration)[a-z0-9_]+(-[a-z0-9_]+)*"
NAMESPACE_RULE = (
    "use lower-case letters, digits, `_` and single `-`: queues are named after it; "
    "names that begin with `orchestration` are those of Tasker's own queues"
)
MAX_NAMESPACE = 33
"""So that `{namespace}_domain_events` fits into a queue's name of 47 characters."""

COUNT = Number(whole=True, minimum=1, maximum=MAX_COUNT)
MINUTES = Number(above=0, maximum=MAX_MINUTES)
SECONDS = Number(above=0, maximum=MAX_SECONDS)
DELAY_SECONDS = Number(minimum=0, maximum=MAX_SECONDS)
DELAY_MS = Number(whole=True, minimum=0, maximum=MAX_MILLISECONDS)
ATTEMPTS = Number(whole=True, minimum=0, maximum=HIGHEST_MAX_ATTEMPTS)
NAME_TEXT = Text(NAME, NAME_RULE, max_length=MAX_NAME)
PROSE = Text(may_be_empty=True)

STEP_TYPES = Choice(
    tuple(str(type_) for type_ in StepType),
    aliases=tuple((alias, str(type_)) for type_ in StepType for alias in type_.traits.aliases),
)
BACKOFFS = ("exponential", "linear", "fibonacci", "fixed", "none")
CONDITIONS = ("success", "failure", "retryable_failure", "permanent_failure", "always")
FAILURE_STRATEGIES = Choice(("continue_on_failure", "fail_fast", "isolate"), aliases=(("isolate_failed", "isolate"),))

DEFAULT_RETRY = RetryPolicy()
RETRY = Mapping(
    "`retry`",
    (
        Key("retryable", Boolean(), "Whether a failed step may run again.", default=DEFAULT_RETRY.retryable),
        Key(
            "max_attempts",
            ATTEMPTS,
            "How often the step may run in all, the first run included; 1 for a decision without a `retry` block.",
            default=DEFAULT_RETRY.max_attempts,
            aliases=("limit",),
            older=("limit",),
        ),
        Key("backoff", Choice(BACKOFFS), "How the delay before the next attempt grows.", default=DEFAULT_RETRY.backoff),
        Key("backoff_base_ms", DELAY_MS, "The first delay, in milliseconds.", default=DEFAULT_RETRY.backoff_base_ms),
        Key("max_backoff_ms", DELAY_MS, "The longest delay, in milliseconds.", default=DEFAULT_RETRY.max_backoff_ms),
        Key(
            "jitter",
            Fraction(JITTER_SHARE),
            "Share of the delay that is added or taken away at random; `none`; `full`: from nothing to the delay.",
            default=0,
        ),
        Key(
            "max_elapsed",
            Duration(),
            "How long after the start of the first attempt the last one begins, whatever `max_attempts` says.",
        ),
        Key(
            "backoff_multiplier",
            Number(minimum=1, maximum=MAX_MULTIPLIER),
            "The factor by which exponential delays grow.",
            default=DEFAULT_RETRY.multiplier,
        ),
        Key("increment_ms", DELAY_MS, "What linear delays grow by, in milliseconds; otherwise the first delay."),
        Key(
            "never_on",
            ListOf(ErrorName()),
            "Errors after which the step does not run again: exception classes, error codes, HTTP statuses (`404`, "
            "`4xx`), SQLSTATEs (`sqlstate:23`).",
        ),
        Key(
            "only_on",
            ListOf(ErrorName(), at_least_one=True),
            "The only errors after which it runs again, named as for `never_on`.",
        ),
        Key("profile", Text(), f"A named policy, whose values the other keys override: {', '.join(RETRY_PROFILES)}."),
        Key("initial_delay", DELAY_SECONDS, "The first delay, in seconds.", notice="write `backoff_base_ms`"),
        Key("max_delay", DELAY_SECONDS, "The longest delay, in seconds.", notice="write `max_backoff_ms`"),
    ),
    foreign=OF_RETRIES,
)

HANDLER = Mapping(
    "`handler`",
    (
        Key("callable", Text(), "The registered name of the handler, or its Python path.", required=True),
        Key(
            "method",
            Text(r"[A-Za-z][A-Za-z0-9_]*", "a method's name; one that starts with `_` cannot be called"),
            "The method of the handler to call.",
            default="call",
        ),
        Key("resolver", Text(), "The resolver that must find the callable; otherwise each is asked in turn."),
        Key("initialization", Verbatim(), "Fixed settings that the handler finds in `context.step_config`."),
    ),
    shorthand="callable",
)

EVENT = (
    Key("name", NAME_TEXT, "The name of the event, for example `order.shipped`.", required=True),
    Key("description", PROSE, "Meaning of the event."),
    Key("schema", SchemaKey(), "JSON Schema of the payload."),
)

PUBLISHED_EVENT = Mapping(
    "an event of `publishes_events`",
    (
        *EVENT,
        Key("condition", Choice(CONDITIONS), "The outcome of the step that publishes it.", default="success"),
        Key(
            "delivery_mode",
            Choice(("durable", "fast", "broadcast")),
            "`durable` for every reader, kept; `fast` inside the worker's process, lost with it; `broadcast` both.",
            default="durable",
        ),
        Key("publisher", Text(), "A publisher of your own that makes the payload."),
    ),
)

BATCH = Mapping(
    "`batch_config`",
    (
        Key("batch_size", COUNT, "Items in one batch.", idle=BATCH_SIZE),
        Key("parallelism", COUNT, "Batches that should run side by side.", idle=PARALLELISM),
        Key("cursor_field", Text(), "The field that the cursors range over.", default="id"),
        Key("worker_template", Text(), "The `batch_worker` step to make instances of.", idle=WORKER_TEMPLATE),
        Key("failure_strategy", FAILURE_STRATEGIES, "What a worker does with an item that fails.", default="fail_fast"),
        Key("checkpoint_interval", COUNT, "Items between two checkpoints; advice for the handler."),
    ),
)

STEP_LIFECYCLE = Mapping(
    "a step's `lifecycle`",
    (
        Key(
            "max_steps_in_process_minutes",
            MINUTES,
            "Minutes in progress after which the step counts as stale: its task is recorded, and the step runs on.",
        ),
        Key(
            "max_retries",
            ATTEMPTS,
            "The same as `max_attempts`.",
            notice="write `retry: {max_attempts: ...}`",
        ),
        Key(
            "backoff_multiplier",
            Number(minimum=1, maximum=MAX_MULTIPLIER),
            "The factor of exponential delays.",
            notice="write `retry: {backoff_multiplier: ...}`",
        ),
    ),
)

COMPENSATION = Mapping(
    "`compensate`",
    (
        Key("handler", HANDLER, "The code that undoes the effect of the step.", required=True),
        Key("retry", RETRY, "How often and how soon it runs again when it fails."),
        Key("timeout_seconds", SECONDS, "The time limit of one attempt, in seconds."),
    ),
    shorthand="handler",
)

STEP = Mapping(
    "a step",
    (
        Key("name", NAME_TEXT, "The name of the step, unique in the template.", required=True),
        Key("type", STEP_TYPES, "The kind of step.", default=str(DEFAULT), aliases=("step_type",)),
        Key("description", PROSE, "What the step does."),
        Key("handler", HANDLER, "The code that runs the step; a step with `rules` or that waits has none."),
        *CONDITION_KEYS,
        *WAIT_KEYS,
        *CHILD_KEYS,
        Key(
            "inputs",
            Inputs(),
            "Input of the handler, in place of the task's: values, and expressions such as `${steps.quote.amount}`.",
        ),
        Key("dependencies", ListOf(Text()), "The steps that must be complete before.", aliases=("depends_on",)),
        Key("system_dependency", Text(), "One of the declared systems that the step works with.", idle=SYSTEMS),
        Key("retry", RETRY, "How often and how soon a failed step runs again."),
        Key("lifecycle", STEP_LIFECYCLE, "When the step counts as stale."),
        Key("timeout_seconds", SECONDS, "The time limit of one attempt, in seconds."),
        Key(
            "delay", Duration(), "How long the step waits once its dependencies are complete: `90s`, `5m`, `36h`, `3d`."
        ),
        Key(
            "not_before",
            StartTime(),
            "When the step begins at the earliest: a time with a zone, or the path of one: `input.trip.starts_at`, "
            "`steps.quote.valid_from`.",
        ),
        Key("concurrency", CONCURRENCY, "How many of these steps run at the same time, in all tasks."),
        Key("rate_limit", RATE_LIMIT, "How many attempts of the step begin in a time, in all tasks."),
        Key(
            "limits",
            ListOf(NAMED_LIMIT),
            "Limits of the configuration that the step shares with those of other templates: `[payment_api]`.",
        ),
        *FAILURES_OF_STEPS,
        Key(
            "compensate",
            COMPENSATION,
            "What undoes the effect of the step, if it is complete when the task is compensated.",
        ),
        *NEEDS_OF_WORKERS,
        *ATTEMPTS_OF_STEPS,
        Key("publishes_events", ListOf(PUBLISHED_EVENT), "Events that the outcome of the step publishes."),
        Key("batch_config", BATCH, "Advice for batch workers, given to each instance."),
        Key("result_schema", SchemaKey(), "JSON Schema that the handler's result must fit."),
        Key("composition", Free(), "Actions inside a step.", refused="write the actions as a handler in Python"),
    ),
    foreign=OF_STEPS,
    either=("handler", "rules"),
    unless=("type", WAITING),
)

DEFAULTS = Mapping(
    "`defaults`",
    tuple(
        key
        for key in STEP.keys
        if key.name in ("retry", "timeout_seconds", "execution", "on_worker_lost", "circuit_breaker")
    ),
)

OVERRIDE = Mapping(
    "an override",
    (
        Key("name", Text(), "The step to override, or `ALL` for every step.", required=True),
        Key("timeout_seconds", SECONDS, "The time limit of one attempt, in seconds."),
        Key("retry", RETRY, "Takes the place of the step's `retry` block."),
        Key(
            "handler",
            Mapping("the `handler` of an override", (Key("initialization", Verbatim(), "Merged key by key."),)),
            "Settings of the handler.",
        ),
        Key("inputs", Inputs(), "Inputs of a step that has some; merged key by key."),
    ),
)

ENVIRONMENT = Mapping(
    "an environment",
    (Key("steps", ListOf(OVERRIDE), "The overrides; a step's own entry wins over `ALL`.", required=True),),
)

LIFECYCLE = Mapping(
    "`lifecycle`",
    (
        Key("max_duration_minutes", MINUTES, "Minutes after which the whole task counts as stale."),
        Key("max_waiting_for_dependencies_minutes", MINUTES, "Minutes a task may wait for dependencies."),
        Key("max_waiting_for_retry_minutes", MINUTES, "Minutes a task may wait for a retry."),
        Key("max_steps_in_process_minutes", MINUTES, "Minutes a task may have steps in process."),
        Key("staleness_action", Choice(("dlq",)), "What happens to a stale task.", default="dlq"),
        Key("auto_fail_on_timeout", Boolean(), "Whether a stale task fails automatically."),
        Key("auto_dlq_on_timeout", Boolean(), "Whether a stale task automatically gets a dead letter."),
    ),
)

TEMPLATE = Mapping(
    "the template",
    (
        Key("name", NAME_TEXT, "The name of the template.", required=True),
        Key(
            "namespace_name",
            Text(NAMESPACE, NAMESPACE_RULE, max_length=MAX_NAMESPACE),
            "The namespace, which routes the steps to the workers that serve it.",
            required=True,
            aliases=("namespace",),
        ),
        Key(
            "version",
            Version(VERSION, VERSION_RULE, max_length=64),
            "The version, for example `1.0.0`.",
            required=True,
        ),
        Key("description", PROSE, "What the workflow does."),
        Key("metadata", Free(), "Anything worth keeping: author, tags, links."),
        Key(
            "system_dependencies",
            Mapping(
                "`system_dependencies`",
                (
                    Key("primary", Text(), "The main outside system.", default="default"),
                    Key("secondary", ListOf(Text()), "Further outside systems."),
                ),
            ),
            "Names of the outside systems that steps work with.",
            idle=SYSTEMS,
        ),
        Key(
            "domain_events",
            ListOf(Mapping("an event of `domain_events`", EVENT)),
            "What the events of this workflow are: description and schema of each, for the steps that publish it.",
        ),
        Key("input_schema", SchemaKey(), "JSON Schema that a task's context must fit when it is submitted."),
        Key("lifecycle", LIFECYCLE, "When a task counts as stale."),
        Key("schedules", ListOf(SCHEDULE), "When tasks are submitted by themselves."),
        Key(
            "priority",
            Priority(),
            "Priority of tasks that are submitted without one: `critical` (100), `high` (10), `normal` "
            "(0), `low` (-10), `bulk` (-100), or another number. A point is worth ten minutes of waiting.",
            default=0,
        ),
        Key(
            "release",
            Choice(("by_age", "finish_started_first")),
            "Order of its steps among tasks of the same priority: steps that wait longest first, or steps of the task "
            "that was submitted first.",
            default="by_age",
        ),
        Key(
            "fairness",
            FAIRNESS,
            "Fair shares: tasks with the same value of a key are a flow, and flows are claimed in turn.",
        ),
        Key("concurrency", TASK_CONCURRENCY, "How many tasks of the template are open at the same time."),
        *OF_SUBMISSIONS,
        *FAILURES_OF_TEMPLATES,
        Key("expires_in", Duration(), "How long after its start a task is cancelled if no worker has begun it."),
        Key("deadline", Duration(), "How long after its start a task may take; then its open steps fail."),
        Key(
            "task_events",
            Boolean(),
            "Whether the end of a task is a durable event: `task.completed`, `task.failed` or `task.cancelled`.",
            default=False,
        ),
        Key(
            "task_handler",
            Mapping("`task_handler`", (Key("callable", Text(), "A name."), Key("initialization", Free(), "Settings."))),
            "Kept in the metadata; has no effect.",
            notice="it has no effect; remove it",
        ),
        Key("loaded_from", Text(), "Where a generated template came from; kept in the metadata, has no effect."),
        Key("defaults", DEFAULTS, "Keys for every step that does not write them."),
        Key("environments", MapOf(ENVIRONMENT), "Overrides for each environment."),
        Key("steps", ListOf(STEP, at_least_one=True), "The steps, in any order.", required=True),
    ),
    foreign=OF_TEMPLATES,
)
