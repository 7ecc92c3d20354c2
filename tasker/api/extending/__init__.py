"""What plugins make the routes of that they add to a server (`tasker_routers`).

A plugin makes its routers with `plugin_router` and gives each route `needs(Permission...)`; the gate then lets callers
through as it does for the server's own routes, before the body is read. `program_of(request)` has the services.
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
