"""Tools for the routes that plugins add to a server (`tasker_routers`).

A plugin creates its routers with `plugin_router` and gives each route `needs(Permission...)`. The gate then checks
callers before the body is read, as for the server's own routes. `program_of(request)` returns the services.
"""

from tasker.api.extending.route import plugin_router
from tasker.api.permissions import Permission, actor_of, caller_of, namespaces_of, needs, require_namespace
from tasker.api.program import program_of

__all__ = [
    "Permission",
    "actor_of",
    "caller_of",
    "namespaces_of",
    "needs",
    "plugin_router",
    "program_of",
    "require_namespace",
]
