"""Configuration of this process without secrets; served if the configuration turns it on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from tasker.operations.permissions import Permission
from tasker.server.auth.gate import needs
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.problems import refusals
from tasker.version import __version__

routes = router("configuration")


class ConfigResponse(BaseModel):
    """Configuration without secrets."""

    metadata: dict[str, Any]
    auth: dict[str, Any]
    circuit_breakers: dict[str, Any]
    database_pools: dict[str, Any]
    deployment_mode: str
    messaging: dict[str, Any]


@routes.get("/config", response_model=ConfigResponse, responses=refusals(), **needs(Permission.SYSTEM_CONFIG_READ))
async def get_config(request: Request) -> Json:
    """Return the configuration of pools, breakers and messaging, without secrets."""
    options = request.app.state.options
    metadata = {"version": __version__, "environment": options.environment, "timestamp": datetime.now(UTC)}
    return Json({"metadata": metadata, **options.configuration})
