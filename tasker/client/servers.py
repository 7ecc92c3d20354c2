"""Choice of a server: URL, environment variable or a profile in `profiles.toml`."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.settings.defaults import KEY_HEADER

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
        auth_headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        auth_headers |= {self.api_key_header: self.api_key} if self.api_key else {}
        if not all(value.isascii() and value.isprintable() for value in auth_headers.values()):
            raise UsageError("the token or API key has invalid characters", hint="copy it again")
        return auth_headers

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
        parts = urlsplit(url.strip())
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError as error:
        raise UsageError(f"{url!r} is not a URL: {error}", hint=EXAMPLE) from None
    if not url.strip().isprintable():
        raise UsageError(f"{url!r} is not a URL: it contains control characters", hint=EXAMPLE)
    return parts


def _shown(url: str, parts: SplitResult) -> str:
    """Return the URL with its user name and password masked."""
    return url.replace(f"{parts.netloc.rpartition('@')[0]}@", "***@") if "@" in parts.netloc else url


URL, PROFILE = "TASKER_URL", "TASKER_PROFILE"
TOKENS = ("TASKER_ORCHESTRATION_AUTH_TOKEN", "TASKER_AUTH_TOKEN", "TASKER_TOKEN")
API_KEY, API_KEY_HEADER, CA_FILE = "TASKER_API_KEY", "TASKER_API_KEY_HEADER", "TASKER_CA_FILE"


def server_at(url: str) -> ServerAddress:
    """Return the address with the credentials of the environment; a token takes precedence over an API key."""

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
        return read_profiles(profiles_file()).get(name)
    return None


FILE = Path("tasker") / "profiles.toml"
KEYS = ("url", "token", "api_key", "ca_file")
SECRET = ("token", "api_key")
HEADING = "# Written by `tasker profile`.\n"


@dataclass(frozen=True, slots=True)
class Profiles:
    """Profiles of a user by name, and the active one."""

    servers: Mapping[str, ServerAddress] = field(default_factory=dict)
    active: str | None = None

    def get(self, name: str) -> ServerAddress:
        """Return the server of a profile. Raises `UsageError` for an unknown name."""
        if name not in self.servers:
            known = (
                f"expected one of: {', '.join(sorted(self.servers))}"
                if self.servers
                else "create one: tasker profile add"
            )
            raise UsageError(f"there is no profile {name!r}", hint=known)
        return self.servers[name]

    def with_server(self, name: str, server: ServerAddress) -> Profiles:
        """Return a copy with this profile added or replaced. Raises `UsageError` for an invalid name."""
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise UsageError(f"{name!r} is not a valid profile name", hint="letters, digits, - and _")
        return replace(self, servers={**self.servers, name: server})

    def without(self, name: str) -> Profiles:
        """Return a copy without a profile. Raises `UsageError` for an unknown name."""
        self.get(name)
        rest = {other: server for other, server in self.servers.items() if other != name}
        return Profiles(rest, None if self.active == name else self.active)

    def using(self, name: str | None) -> Profiles:
        """Return a copy with this profile active, or none. Raises `UsageError` for an unknown name."""
        if name is not None:
            self.get(name)
        return replace(self, active=name)


def profiles_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the profiles file: below `XDG_CONFIG_HOME`, else `~/.config`."""
    base = environment.get("XDG_CONFIG_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".config") / FILE


def read_profiles(file: Path) -> Profiles:
    """Read the profiles; empty if there is no file.

    Raises `UsageError` for an invalid file, and for one with secrets that other users can read.
    """
    try:
        text = file.read_text(encoding="utf-8")
        import tomllib  # needed only where there are profiles

        data = tomllib.loads(text)
        profiles = data.pop("profiles", {})
        servers = {name: _server(file, name, entry) for name, entry in profiles.items()}
    except (FileNotFoundError, NotADirectoryError):
        return Profiles()
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{file} cannot be used: {error}", hint="fix or delete it; tasker profile add creates it"
        ) from None
    if any(server.token or server.api_key for server in servers.values()) and file.stat().st_mode & 0o077:
        raise UsageError(f"{file} contains secrets and is readable by other users", hint=f"chmod 600 {file}")
    active = data.pop("active", None)
    if data or not (active is None or active in servers):
        what = f"active = {active!r} is not a profile" if not data else f"it has {', '.join(data)}"
        raise UsageError(f"{file} cannot be used: {what}", hint="expected `active` and tables [profiles.NAME]")
    return Profiles(servers, active)


def _server(file: Path, name: str, entry: Mapping[str, Any]) -> ServerAddress:
    unknown = sorted(entry.keys() - set(KEYS))
    if unknown or "url" not in entry or not all(isinstance(value, str) for value in entry.values()):
        what = f"unknown: {', '.join(unknown)}" if unknown else "expected a url; all values must be strings"
        raise UsageError(f"{file}: the profile {name} cannot be used; {what}", hint=f"expected keys: {', '.join(KEYS)}")
    ca_file = Path(entry["ca_file"]) if "ca_file" in entry else None
    return ServerAddress(entry["url"], entry.get("token"), entry.get("api_key"), ca_file)


def write_profiles(file: Path, profiles: Profiles) -> None:
    """Write the file atomically, readable by its owner only. Raises `UsageError` if it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        import tempfile  # needed only to write profiles

        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".profiles")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as written:
                written.write(_text(profiles))
            os.replace(name, file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        hint = "set XDG_CONFIG_HOME to another folder"
        raise UsageError(f"{file} cannot be written: {error.strerror}", hint=hint) from None


def _text(profiles: Profiles) -> str:
    parts = [HEADING] + ([f"active = {_quoted(profiles.active)}\n"] if profiles.active else [])
    for name, server in profiles.servers.items():
        values = {key: getattr(server, key) for key in KEYS}
        lines = [f"{key} = {_quoted(str(value))}\n" for key, value in values.items() if value is not None]
        parts.append("".join([f"\n[profiles.{name}]\n", *lines]))
    return "".join(parts)


def _quoted(text: str) -> str:
    """Return the text as a TOML basic string, which has the escapes of JSON."""
    return json.dumps(text)
