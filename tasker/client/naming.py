"""Server address and credentials from environment variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasker.client.http.server import ServerAddress

URL, PROFILE = "TASKER_URL", "TASKER_PROFILE"
TOKENS = ("TASKER_ORCHESTRATION_AUTH_TOKEN", "TASKER_AUTH_TOKEN", "TASKER_TOKEN")
API_KEY, API_KEY_HEADER, CA_FILE = "TASKER_API_KEY", "TASKER_API_KEY_HEADER", "TASKER_CA_FILE"


def server_at(url: str) -> ServerAddress:
    """Return the address with the credentials of the environment; a token takes precedence over an API key."""
    from tasker.client.http.server import ServerAddress
    from tasker.contracts.defaults.authentication import KEY_HEADER

    token = next(filter(None, map(os.environ.get, TOKENS)), None)
    api_key, header, ca_file = (os.environ.get(name) or None for name in (API_KEY, API_KEY_HEADER, CA_FILE))
    return ServerAddress(
        url, token, None if token else api_key, Path(ca_file) if ca_file else None, header or KEY_HEADER
    )


def server_of_environment() -> ServerAddress | None:
    """Return the server of `TASKER_URL`, else of the profile `TASKER_PROFILE`.

    None if neither is set. Raises `UsageError` for an unknown profile.
    """
    if url := os.environ.get(URL):
        return server_at(url)
    if name := os.environ.get(PROFILE):
        from tasker.client.profiles import profiles_file, read_profiles

        return read_profiles(profiles_file()).get(name)
    return None
