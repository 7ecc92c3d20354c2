"""The defaults of how a process learns of work: listening for notifications, and polling."""

from __future__ import annotations

WORKER_POLL_MS = 1000
"""Longest pause of a worker between two looks at a queue."""

ORCHESTRATOR_POLL_SECONDS = 5
"""The same of an orchestrator, which is told of nearly everything."""

LOST_POLL_MS = 500
"""The same while nothing announces messages."""

CONNECTION_TIMEOUT_SECONDS = 30
"""Limit of connecting and of each proof that notifications arrive."""

EVENT_TIMEOUT_SECONDS = 60
"""How often it is proven again."""

RETRY_INTERVAL_SECONDS = 5
"""Pause before a lost listener connects again."""

MAX_RETRY_ATTEMPTS = 5
"""Failures in a row after which the log says loudly that polling goes on."""

HEALTH_CHECK_INTERVAL_SECONDS = 30
"""How often a process looks at its own health."""

MAX_CONSECUTIVE_ERRORS = 10
"""Errors in a row that make it unhealthy."""

ERROR_RATE_PER_MINUTE = 20
"""Errors per minute that do."""

WORKER_SYSTEM_ID = "worker-event-system"
ORCHESTRATOR_SYSTEM_ID = "orchestration-event-system"
"""Labels in the log."""

DEPLOYMENT_MODE = "Hybrid"
"""A process listens, and polls below that where notifications may be lost."""
