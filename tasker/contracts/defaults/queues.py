"""Names of the queues that orchestrators read."""

from __future__ import annotations

TASK_REQUESTS_QUEUE = "orchestration_task_requests"
STEP_RESULTS_QUEUE = "orchestration_step_results"
TASK_FINALIZATIONS_QUEUE = "orchestration_task_finalizations"
