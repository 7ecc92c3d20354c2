"""Defaults of how a process learns of work: listening for notifications, and polling."""

from __future__ import annotations

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
