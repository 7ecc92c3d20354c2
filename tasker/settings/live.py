"""Which settings a running process takes over when it reads its configuration again."""

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
"""The beginnings of their paths."""
NOT_LIVE = (
    "worker.event_systems.worker.metadata.fallback_poller.supported_namespaces",
    "worker.event_systems.worker.metadata.in_process_events.deduplication_cache_size",
    *(f"{process}.web.auth.{key}" for process in ("orchestration", "worker") for key in ("enabled", "api_key_header")),
)
"""Exceptions: what is served, what is remembered, and whether callers are asked who they are is fixed at the start."""


def is_live(path: str) -> bool:
    """True for a parameter that a running process takes over; one of a backend's table if what it overrules is."""
    parameter = by_path().get(path)
    path = (parameter.overrules if parameter else None) or path
    return _below(path, LIVE) and not _below(path, NOT_LIVE)


def _below(path: str, beginnings: tuple[str, ...]) -> bool:
    return any(path == beginning or path.startswith(f"{beginning}.") for beginning in beginnings)
