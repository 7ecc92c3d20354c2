"""HTTP application of the port of a worker or an orchestrator."""

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
    """Options of the port. `connections` is the maximum number of database connections of the process."""

    limits: RequestLimits = field(default_factory=RequestLimits)
    environment: str = ENVIRONMENT
    connections: int = 0
    metrics: Sequence[Metric] = ()
    """Metrics of plugins, exposed with those of the process."""
    configuration: Mapping[str, Any] | None = None
    """Content of `/config`; None leaves the path out."""


def port_application(observed: ProcessSnapshot, options: PortOptions, gate: Gate = open_gate) -> Envelope:
    """Return the ASGI application of the port of a process."""
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
