"""Numbers for Prometheus. Open to everybody, as published: they name no task and hold no value of one."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import PlainTextResponse

from tasker.api.routes.route import program_of, router
from tasker.services.server.exposition import CONTENT_TYPE, families

routes = router("health")


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """How the fleet and this process do, in the text format of Prometheus."""
    program = program_of(request)
    text = await program.metrics.text(program.breakers.readings()) + families(request.app.state.options.metrics)
    return PlainTextResponse(text, media_type=CONTENT_TYPE)
