"""Settings that a running process applies when it reloads its configuration."""

from __future__ import annotations

from tasker.settings.catalogue import by_path

LIVE = (
    "common.circuit_breakers",
    "common.database.listen_url",
    "common.queues.poll_interval_ms",
    "orchestration.event_systems.orchestration",
    "orchestration.web.auth",
    "worker.circuit_breakers",
    "worker.event_systems.worker",
    "worker.web.auth",
)
"""Prefixes of their paths."""
NOT_LIVE = (
    "worker.event_systems.worker.metadata.fallback_poller.supported_namespaces",
    "worker.event_systems.worker.metadata.in_process_events.deduplication_cache_size",
    *(f"{process}.web.auth.{key}" for process in ("orchestration", "worker") for key in ("enabled", "api_key_header")),
)
"""Exceptions: served namespaces, the size of the event cache and authentication are fixed at the start."""


def is_live(path: str) -> bool:
    """Return whether a running process applies the parameter; a backend's setting follows the one that it overrides."""
    parameter = by_path().get(path)
    path = (parameter.overrules if parameter else None) or path
    return _below(path, LIVE) and not _below(path, NOT_LIVE)


def _below(path: str, beginnings: tuple[str, ...]) -> bool:
    return any(path == beginning or path.startswith(f"{beginning}.") for beginning in beginnings)
