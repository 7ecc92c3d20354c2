"""The defaults of telling callers apart."""

from __future__ import annotations

KEY_HEADER = "X-API-Key"
"""The header that carries a key."""

VERIFICATION_METHOD = "public_key"
"""Tokens are checked with a key that is given."""

TOKEN_AUDIENCE = "tasker-api"
"""The `aud` of a token for an orchestrator or a server."""

TOKEN_ISSUER = "tasker-core"
"""Its `iss`."""

PERMISSIONS_CLAIM = "permissions"
"""The claim of a token that lists what it permits."""

TOKEN_HOURS = 24
"""Lifetime of a token that is made."""

JWKS_REFRESH_SECONDS = 3600
"""The keys of an issuer are fetched again after so long."""

PAGE_SESSION_SECONDS = 12 * 3600
"""Longest time that somebody stays signed in on the web page."""
