"""Keys reserved for parts of Tasker that this version does not have: path -> part. They are refused.

Their types, ranges and defaults are defined, so that the names get no other meaning. Accepting them would suggest a
function that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping

_EVENTS = "a queue in front of the publishers of domain events, which are called while the result is processed"
_GRPC = "the gRPC API"
_CACHE = "a cache of analytics, which are read each time (docs/decisions/0027)"
_PERIODS = "metrics collected at intervals; Tasker counts events as they happen"
_WEB = "connections of a worker for requests, none of which query the database"

RESERVED: Mapping[str, str] = {
    "common.cache": _CACHE,
    "common.circuit_breakers.component_configs.cache": _CACHE,
    "common.circuit_breakers.global_settings.metrics_collection_interval_seconds": _PERIODS,
    "common.mpsc_channels.event_publisher": _EVENTS,
    "common.mpsc_channels.overflow_policy.metrics": _PERIODS,
    "orchestration.decision_points.enable_metrics": "metrics that are turned off one by one",
    "orchestration.enable_performance_logging": "lines of the log for each phase of a task",
    "orchestration.grpc": _GRPC,
    "worker.grpc": _GRPC,
    "worker.orchestration_client": "workers without a database",
    "worker.web.database_pools": _WEB,
}
"""A path includes everything below it."""
