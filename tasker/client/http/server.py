"""Address of a server and the client's credentials."""

from __future__ import annotations

import ssl
from dataclasses import field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.authentication import KEY_HEADER
from tasker.errors import UsageError

EXAMPLE = "for example http://localhost:8080 or https://tasker.example.com"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """URL of a server, without a trailing slash; a path is the prefix under which a proxy serves it.

    `token` is sent as a bearer token, `api_key` in the header `api_key_header`. `ca_file` has the CA certificates to
    trust instead of the system's. Raises `UsageError` for an invalid URL, and if both a token and an API key are given.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    api_key_header: str = KEY_HEADER

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", checked_url(self.url))
        if self.token and self.api_key:
            raise UsageError("both a token and an API key are given", hint="give only one of them")

    def headers(self) -> dict[str, str]:
        """Return the headers with the credentials. Raises `UsageError` for characters that a header cannot have."""
        found = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        found |= {self.api_key_header: self.api_key} if self.api_key else {}
        if not all(value.isascii() and value.isprintable() for value in found.values()):
            raise UsageError("the token or API key has invalid characters", hint="copy it again")
        return found

    def keeps_secrets(self) -> bool:
        """Return whether the connection is encrypted or stays on this machine."""
        parts = urlsplit(self.url)
        return parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")

    def trust(self) -> ssl.SSLContext:
        """Return the TLS context with the trusted certificates. Raises `UsageError` for a file without certificates.

        For plain HTTP without a CA file the context is empty: loading the system's certificates takes 20 ms of CPU.
        """
        if self.ca_file is None and urlsplit(self.url).scheme == "http":
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"the CA file {self.ca_file} cannot be used: {getattr(error, 'strerror', None) or error}",
                hint="expected a readable file with PEM certificates",
            ) from None


def checked_url(url: str) -> str:
    """Return the URL without a trailing slash. Raises `UsageError` for an invalid server URL."""
    parts = _parts(url)
    if parts.scheme not in ("http", "https"):
        raise UsageError(
            f"{_shown(url, parts)!r} is not the URL of a Tasker server: expected http or https", hint=EXAMPLE
        )
    if parts.username or parts.password:
        hint = "remove them, and set a token or API key in a profile: tasker profile add"
        raise UsageError(f"the URL of a server must not contain a user or password: {_shown(url, parts)}", hint=hint)
    if not parts.hostname or parts.query or parts.fragment:
        raise UsageError(f"{url!r} is not the URL of a Tasker server: expected scheme, host and port", hint=EXAMPLE)
    return url.strip().rstrip("/")


def _parts(url: str) -> SplitResult:
    try:
        found = urlsplit(url.strip())
        _ = found.port  # raises ValueError for an invalid port
    except ValueError as error:
        raise UsageError(f"{url!r} is not a URL: {error}", hint=EXAMPLE) from None
    if not url.strip().isprintable():
        raise UsageError(f"{url!r} is not a URL: it contains control characters", hint=EXAMPLE)
    return found


def _shown(url: str, parts: SplitResult) -> str:
    """Return the URL with its user name and password masked."""
    return url.replace(f"{parts.netloc.rpartition('@')[0]}@", "***@") if "@" in parts.netloc else url
