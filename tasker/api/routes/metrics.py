"""Prometheus metrics. Open to everyone, as documented: they contain no names and no values of tasks."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import PlainTextResponse

from tasker.api.routes.route import program_of, router
from tasker.services.server.exposition import CONTENT_TYPE, families

routes = router("health")


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Return the metrics of the fleet and this process in the Prometheus text format."""
    program = program_of(request)
    text = await program.metrics.text(program.breakers.readings()) + families(request.app.state.options.metrics)
    return PlainTextResponse(text, media_type=CONTENT_TYPE)
