"""Defaults of authentication."""

from __future__ import annotations

KEY_HEADER = "X-API-Key"
"""Header that carries an API key."""

VERIFICATION_METHOD = "public_key"
"""Method of verifying tokens: with a configured public key."""

TOKEN_AUDIENCE = "tasker-api"
"""`aud` claim of a token for an orchestrator or a server."""

TOKEN_ISSUER = "tasker-core"
"""`iss` claim of a token."""

PERMISSIONS_CLAIM = "permissions"
"""Token claim that lists the permissions."""

TOKEN_HOURS = 24
"""Lifetime of a generated token, in hours."""

JWKS_REFRESH_SECONDS = 3600
"""The keys of an issuer are fetched again after so long."""

PAGE_SESSION_SECONDS = 12 * 3600
"""Longest time that somebody stays signed in on the web page."""
