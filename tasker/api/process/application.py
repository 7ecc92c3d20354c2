"""The application behind the port of a worker or an orchestrator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from fastapi import FastAPI

from tasker.api.envelope import Envelope, RequestLimits
from tasker.api.failures import answer_failures
from tasker.api.permissions import Gate, open_gate
from tasker.api.process.observed import ProcessSnapshot
from tasker.api.process.routes import configuration_routes, routes
from tasker.api.process.telling import ProcessStatus
from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import ENVIRONMENT
from tasker.contracts.metrics import Metric
from tasker.services.server.metrics import AccessCounts
from tasker.services.server.refused_callers import RefusedCallers
from tasker.version import __version__


@dataclass(frozen=True, slots=True)
class PortOptions:
    """How the port is offered. `connections` are those of the process to its database, at most."""

    limits: RequestLimits = field(default_factory=RequestLimits)
    environment: str = ENVIRONMENT
    connections: int = 0
    metrics: Sequence[Metric] = ()
    """Of plugins, told with those of the process."""
    configuration: Mapping[str, Any] | None = None
    """What `/config` answers; None: there is no such path."""


def port_application(observed: ProcessSnapshot, options: PortOptions, gate: Gate = open_gate) -> Envelope:
    """What a process answers of itself, as an ASGI application."""
    app = FastAPI(title=f"Tasker {observed.kind}", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.router.routes.extend(routes.routes)
    if options.configuration is not None:
        app.router.routes.extend(configuration_routes.routes)
    answer_failures(app)
    state = app.state
    state.telling = ProcessStatus(observed, options.environment, options.connections, options.metrics)
    state.gate, state.rate_limit = gate, None
    state.configuration, state.access = options.configuration, AccessCounts()
    state.refused = refused = RefusedCallers()
    return Envelope(app, options.limits, refused.close)
