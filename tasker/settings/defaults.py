"""Defaults that code needs without the settings model.

It runs on a machine with other work, mostly with the embedded database, and its user is watching.
"""

from __future__ import annotations

ENQUEUE_WINDOW = 2000
"""Enqueued steps per namespace above which further ready steps stay pending."""

STEP_TIMEOUT_MS = 30_000
"""Timeout of one attempt if the template sets none."""

STEP_GRACE_MS = 10_000
"""Time after its timeout at which a sweep takes a running step from its worker."""

LEASE_MS = 15_000
"""Time that a silent worker keeps its steps."""

STARVATION_MS = 10_000
"""Wait of a step for a thread above which a warning is logged."""

LONGEST_STOP_MS = 300_000
"""Maximum of `orchestration.shutdown_timeout_ms`."""

LONGEST_OPTION_SECONDS = 3600
"""Maximum of a worker's option --shutdown-timeout."""

DECISION_DEPTH = 20
"""Maximum number of decisions above each other."""

WARN_DECISION_DEPTH = 10
"""Depth of decisions at which a warning is logged."""


STEPS_PER_DECISION = 100
"""Maximum number of steps that one decision may name."""

WARN_STEPS_PER_DECISION = 50
"""Number of named steps at which a warning is logged."""

KEPT_LOG_LINES = 1_000
"""Log lines of one attempt that are stored with its step."""

MARK_SLICE = 2000
"""Number of backlogged steps whose pause marks one transaction changes."""

REPLAY_STEPS = 1000
"""Number of steps that one transaction of a replay resets, or all of one task."""

CLAIM_BYTES = 16 * 1024 * 1024
"""Maximum size of the inputs, results or events in one answer of the database, unless a single one is larger."""

HTTP_BODY_BYTES = 16 * 1024 * 1024
"""Maximum size of the body of an HTTP request."""
HTTP_STREAMS = 1000
"""Maximum number of clients that follow tasks concurrently."""


ENVIRONMENT = "development"
"""Default environment of a process."""

ON_BLOCKED = "give_up"
"""A task that failed steps block ends in `error`."""

SEARCH_PATHS = ("config/tasks/**/*.{yml,yaml}",)
"""Default patterns of template files."""


KEY_HEADER = "X-API-Key"
"""Header that carries an API key."""

VERIFICATION_METHOD = "public_key"
"""Method of verifying tokens: with a configured public key."""

TOKEN_AUDIENCE = "tasker-api"
"""`aud` claim of a token for an orchestrator or a server."""

TOKEN_ISSUER = "tasker-core"
"""`iss` claim of a token."""

PERMISSIONS_CLAIM = "permissions"
"""Token claim that lists the permissions."""

TOKEN_HOURS = 24
"""Lifetime of a generated token, in hours."""

JWKS_REFRESH_SECONDS = 3600
"""The keys of an issuer are fetched again after so long."""

PAGE_SESSION_SECONDS = 12 * 3600
"""Maximum length of a session of the web page."""


STATEMENT_TIMEOUT_MS = 30_000
"""Time after which the server cancels a statement."""

CONNECT_WAIT_SECONDS = 30
"""Time that a server process waits at start for an unreachable database."""

MAX_CONNECTIONS = 25
"""Maximum number of connections in a pool."""

MIN_CONNECTIONS = 5
"""Number of connections that are not closed when idle."""

ACQUIRE_TIMEOUT_SECONDS = 10
"""Maximum wait for a free connection."""

IDLE_TIMEOUT_SECONDS = 300
"""Idle time after which a connection is closed."""

MAX_LIFETIME_SECONDS = 1800
"""Age at which a connection is replaced."""

SLOW_ACQUIRE_MS = 100
"""Wait for a free connection above which it is logged."""


REQUEST_TIMEOUT_MS = 30_000
"""Timeout of one request."""

REQUEST_BURST = 100
"""Requests that one client may send at once under a rate limit."""

HTTP_POOL_SIZE = 20
"""Database connections reserved for requests."""

HTTP_MAX_CONNECTIONS = 30
"""Maximum number of these connections."""

HTTP_ACQUIRE_TIMEOUT_SECONDS = 30
"""Maximum wait of a request for a connection."""

HTTP_IDLE_TIMEOUT_SECONDS = 600
"""Idle time after which such a connection is closed."""

TOTAL_CONNECTIONS_HINT = 50
"""Expected number of connections of all processes of a fleet."""

CLIENT_TIMEOUT_MS = 30_000
"""Timeout of one call of Tasker's own client."""


WORKER_POLL_MS = 1000
"""Longest poll interval of a worker."""

ORCHESTRATOR_POLL_SECONDS = 5
"""Poll interval of an orchestrator, which is notified of nearly everything."""

LOST_POLL_MS = 500
"""Poll interval while no notifications arrive."""

CONNECTION_TIMEOUT_SECONDS = 30
"""Timeout of connecting, and of each check that notifications arrive."""

EVENT_TIMEOUT_SECONDS = 60
"""Interval between these checks."""

RETRY_INTERVAL_SECONDS = 5
"""Pause before a lost listener reconnects."""

MAX_RETRY_ATTEMPTS = 5
"""Consecutive failures after which the log warns that the process only polls."""

HEALTH_CHECK_INTERVAL_SECONDS = 30
"""Interval of a process's health check."""

MAX_CONSECUTIVE_ERRORS = 10
"""Consecutive errors that make a process unhealthy."""

ERROR_RATE_PER_MINUTE = 20
"""Errors per minute that make a process unhealthy."""

WORKER_SYSTEM_ID = "worker-event-system"
ORCHESTRATOR_SYSTEM_ID = "orchestration-event-system"
"""Labels of the event systems in the log."""

DEPLOYMENT_MODE = "Hybrid"
"""Listen for notifications and also poll, since notifications may be lost."""


CRITICAL_DEPTH = 5000
"""Ready steps of a namespace at which new tasks without priority are refused."""

OVERFLOW_DEPTH = 10_000
"""Ready steps at which tasks of positive priority are refused, too."""

COMPLETION_BUFFER = 1000
"""Results waiting to be stored at which a worker stops claiming."""

BUFFER_WARNING_SHARE = 0.8
"""Fill level, as a share of a buffer's size, at which a warning is logged."""

VISIBILITY_TIMEOUT_SECONDS = 30
"""Time that a received message stays hidden before it is delivered again."""


TASK_REQUESTS_QUEUE = "orchestration_task_requests"
STEP_RESULTS_QUEUE = "orchestration_step_results"
TASK_FINALIZATIONS_QUEUE = "orchestration_task_finalizations"


RETENTION_INTERVAL_SECONDS = 3600
"""Interval at which one process prunes old data."""

SLICE_STEPS = 1_000
"""Steps deleted per transaction; a task is always deleted completely, even if it has more steps."""

EVENTS_KEPT_DAYS = 30
"""Age in days at which domain events are deleted, even if their tasks are retained."""


SINGLE_PROCESS_CONCURRENCY = 200
"""Steps at a time. No other process takes ready steps, so ten would limit the whole workflow. With two hundred, one
half is written while the other half runs, in batches of an efficient size.
"""

SINGLE_PROCESS_DECISION_DEPTH = 3
SINGLE_PROCESS_WARN_DECISION_DEPTH = 2
"""Single-process values of `DECISION_DEPTH` and `WARN_DECISION_DEPTH`. A configuration written by `tasker config init`
has the same values, so a fleet that uses it refuses the same tasks as a laptop.
"""

SINGLE_PROCESS_SLOW_COMPLETION_MS = 10_000
"""Single-process value of `SLOW_COMPLETION_MS`: a laptop's disk is sometimes slow, no reason to stop claiming."""

SINGLE_PROCESS_CRITICAL_DEPTH = 100_000
"""Single-process value of `CRITICAL_DEPTH`: a program that submits many tasks at once works them off itself."""

SINGLE_PROCESS_OVERFLOW_DEPTH = 200_000
"""Single-process value of `OVERFLOW_DEPTH`."""


WAITING_FOR_DEPENDENCIES_MINUTES = 60
"""Minutes in `waiting_for_dependencies` after which a task is stale."""

WAITING_FOR_RETRY_MINUTES = 30
"""Minutes in `waiting_for_retry` after which a task is stale."""

STEPS_IN_PROCESS_MINUTES = 30
"""Minutes in `steps_in_process` after which a task is stale."""

TASK_MAX_LIFETIME_HOURS = 24
"""Maximum time from the creation of a task to its end, active or not."""

CHECKPOINT_STALL_MINUTES = 15
"""Maximum time between two checkpoints of a running step that writes checkpoints."""

STALENESS_INTERVAL_SECONDS = 300
"""Interval of the detection."""

STALE_SLICE = 100
"""Stale tasks per transaction."""

STALENESS_CHANNEL = "task_staleness_detected"
"""Channel on which each stale task is notified."""


SWEEP_INTERVAL_SECONDS = 5
"""Interval of the sweep."""

SWEEP_SLICE = 500
"""Open tasks per query."""

HINT_GRACE_MS = 5_000
"""Age of an enqueued step at which the sweep checks that its message exists."""

PARK_GRACE_MS = 5_000
"""Age of a stored result at which another process handles it."""

IDLE_GRACE_MS = 2_000
"""Time that a task may stay in a transient state."""

UNSERVED_TIMEOUT_SECONDS = 3600
"""Time without a live worker that has a step's handler, after which the step fails."""

FORGET_WORKERS_SECONDS = 86_400
"""Time that an ended process stays in the registry."""

STORM_WINDOW_SECONDS = 600
"""Window in which the failures of one step are counted as a failure burst."""

STORM_PAUSES = "namespace"
"""Target of the pause after a failure burst."""


CONCURRENCY = 10
"""Concurrent steps of a fleet's worker."""

THREADS = 16
"""Threads for blocking handlers."""

LOOP_LAG_MS = 1_000
"""Time that a handler may block the event loop before it is logged by name."""

PUBLISHER_TIMEOUT_MS = 5_000
"""Timeout of a publisher of a domain event."""

EVENT_BUFFER = 1_000
"""Events buffered for the in-process subscribers; further events are dropped."""

SUBSCRIBER_BUFFER = 2_000
"""Events buffered for one subscriber; further events are dropped for it."""

SUBSCRIBER_TIMEOUT_MS = 5_000
"""Time for one event after which a slow subscriber is logged by name."""

SEEN_EVENTS = 10_000
"""Number of event ids remembered, so that an event delivered twice reaches subscribers once."""

EVENT_DRAIN_MS = 5_000
"""Time that subscribers get for the last events at shutdown."""

RESULT_PATH = "inline"
"""A worker advances its tasks itself."""

STOP_GRACE_SECONDS = 10.0
"""Time that a stopping program or server waits for running work."""
