"""Rules that involve several settings."""

from __future__ import annotations

from collections.abc import Iterator

from tasker.settings.inherited import overruled, resolved
from tasker.settings.layering import find
from tasker.settings.model import Settings
from tasker.settings.problems import SettingProblem
from tasker.settings.tables.api import OrchestrationGrpc, OrchestrationWeb, WorkerGrpc, WorkerWeb

_ORDERED = (
    ("common.database.pool.min_connections", "common.database.pool.max_connections"),
    ("orchestration.decision_points.warn_threshold_steps", "orchestration.decision_points.max_steps_per_decision"),
    ("orchestration.decision_points.warn_threshold_depth", "orchestration.decision_points.max_decision_depth"),
    *(
        (f"{context}.web.database_pools.web_api_pool_size", f"{context}.web.database_pools.web_api_max_connections")
        for context in ("orchestration", "worker")
    ),
    (
        "common.queues.queue_depth_thresholds.critical_threshold",
        "common.queues.queue_depth_thresholds.overflow_threshold",
    ),
)
"""(smaller, larger): the first must not be above the second."""


def broken_rules(settings: Settings) -> Iterator[SettingProblem]:
    """Yield a problem for each violated rule."""
    used = resolved(settings)
    values, own = used.settings.model_dump(), {common: path for path, common in overruled(settings)}
    for pair in _ORDERED:
        overruling = any(used.taken_from.get(path) == own.get(path, "") for path in pair)
        smaller, larger = (own[path] for path in pair) if overruling else pair
        low, high = find(values, smaller), find(values, larger)
        if low > high:
            yield SettingProblem(
                smaller, low, f"Above {larger} ({high})", f"Lower it to {high} or less, or raise the other"
            )
    yield from _no_way_to_work(settings)
    yield from _one_port_twice(settings)
    yield from _nobody_let_in(settings)


def _nobody_let_in(settings: Settings) -> Iterator[SettingProblem]:
    tables = {"orchestration.web.auth": settings.orchestration.web.auth, "worker.web.auth": settings.worker.web.auth}
    for name, auth in tables.items():
        if not auth.enabled:
            continue
        published = auth.jwt_verification_method == "jwks"
        if published and not auth.jwks_url:
            yield SettingProblem(f"{name}.jwks_url", "", "jwt_verification_method is jwks, and this is empty", "Set it")
        keys = auth.api_key or (auth.api_keys_enabled and auth.api_keys)
        if not (published or auth.jwt_public_key or auth.jwt_public_key_path or keys):
            issue = "No credentials are configured: neither an API key nor a key to verify tokens"
            fix = "Set jwt_public_key_path, or jwks_url, or api_key, or api_keys_enabled and api_keys; or turn it off"
            yield SettingProblem(f"{name}.enabled", True, issue, fix)


def _no_way_to_work(settings: Settings) -> Iterator[SettingProblem]:
    worker = settings.worker.event_systems.worker
    if worker.deployment_mode == "PollingOnly" and not worker.metadata.fallback_poller.enabled:
        path = "worker.event_systems.worker.metadata.fallback_poller.enabled"
        yield SettingProblem(
            path, False, "With deployment_mode PollingOnly, no component would fetch work", "Set it to true"
        )


def _one_port_twice(settings: Settings) -> Iterator[SettingProblem]:
    taken: dict[str, str] = {}
    servers: dict[str, OrchestrationWeb | WorkerWeb | OrchestrationGrpc | WorkerGrpc] = {
        "orchestration.web": settings.orchestration.web,
        "orchestration.grpc": settings.orchestration.grpc,
        "worker.web": settings.worker.web,
        "worker.grpc": settings.worker.grpc,
    }
    for name, server in servers.items():
        if not server.enabled:
            continue
        path = f"{name}.bind_address"
        other = taken.setdefault(server.bind_address, path)
        if other != path:
            yield SettingProblem(path, server.bind_address, f"The same address as {other}", "Give each its own port")
