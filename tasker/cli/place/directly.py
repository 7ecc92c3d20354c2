"""Commands that call no server, with the reason, for the error about `--url` and `--profile`."""

from __future__ import annotations

FLEET = "it starts a process of the fleet"
OWNER = "it needs the privileges of the database owner, which a server does not have"
FILES = "it uses local files"
KEYS = "it creates and checks keys, which a server does not expose"
NAMES = "it manages the profiles of servers"
INSTALLED = "plugins are installed on each machine separately"
SETTINGS = "it reads files and variables of this machine; the settings of a server are at its /config"
BROKERS = "it needs the credentials of both brokers; a server has those of one"

DIRECTLY = {
    **dict.fromkeys(("run", "dev", "worker start", "orchestrator", "server"), FLEET),
    **dict.fromkeys(("template validate", "template graph", "template show", "template schema"), FILES),
    **dict.fromkeys(("new", "completion"), FILES),
    "auth create-api-key": KEYS,
    "auth generate-keys": KEYS,
    "auth generate-token": KEYS,
    "auth show-permissions": KEYS,
    "auth validate-token": KEYS,
    **dict.fromkeys((f"profile {each}" for each in ("add", "check", "list", "remove", "use")), NAMES),
    "plugin list": INSTALLED,
    "plugin show": INSTALLED,
    **dict.fromkeys(
        (f"config {each}" for each in ("diff", "docs", "explain", "generate", "import", "init", "show", "validate")),
        SETTINGS,
    ),
    **dict.fromkeys(
        (f"db {each}" for each in ("check", "index-inputs", "prune", "report", "roles", "sql", "status", "upgrade")),
        OWNER,
    ),
    "broker migrate": BROKERS,
}
"""Reasons by command, as typed after `tasker`."""
