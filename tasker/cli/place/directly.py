"""Commands that call no server, with the reason, for the error about `--url` and `--profile`."""

from __future__ import annotations

FLEET = "it is what a fleet is made of"
OWNER = "it needs the rights of the database's owner, which a server does not have"
FILES = "it works on files"
KEYS = "it makes and checks keys, which no server hands out"
NAMES = "it is where servers are named"
INSTALLED = "each machine has what is installed there"
SETTINGS = "it works on files and variables of this machine, and a server's settings are at its /config"
BROKERS = "it needs the credentials of both brokers, and a server has those of one"

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
