"""Named servers of a user, stored in `profiles.toml` in the user's configuration folder."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from tasker.client.http.server import ServerAddress
from tasker.contracts.dataclasses import dataclass
from tasker.errors import UsageError

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
        rest = {each: server for each, server in self.servers.items() if each != name}
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
