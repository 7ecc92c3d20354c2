"""Settings of the plugin in the configuration."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Annotated
from urllib.parse import urlsplit

from tasker.settings.table import Check, Table, flag, number, refused, several, whole

PREFIX = "whsec_"
WRITE_URL = "Write https://host/path, without user, password and fragment"


def _name(value: str) -> str:
    if re.fullmatch(r"[a-z0-9_-]{1,60}", value):
        return value
    raise refused("Not a name", "Use 1 to 60 of a-z 0-9 _ -")


def _address(value: str) -> str:
    try:
        parts = urlsplit(value)
        problem = host_problem(parts.hostname or "", parts.port)
    except ValueError:
        raise refused("Not a URL", WRITE_URL) from None
    if problem:
        raise refused(f"Not a URL that can be posted to: {problem}", WRITE_URL)
    if parts.scheme not in ("https", "http") or parts.username or parts.password or parts.fragment:
        raise refused("Not a URL that can be posted to", WRITE_URL)
    return value


def host_problem(host: str, port: int | None) -> str:
    """Return why no address of the host and port can be resolved, or an empty text."""
    if not host:
        return "it has no host"
    if port is not None and not 0 < port < 65_536:
        return f"expected a port from 1 to 65535, got {port}"
    try:
        host.encode("idna")
    except UnicodeError:
        return f"invalid host {host!r:.80}"
    return ""


def _secret(value: str) -> str:
    try:
        key = base64.b64decode(value.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if value.startswith(PREFIX) and 24 <= len(key) <= 64:
        return value
    raise refused("Not a secret of a webhook", f"Write {PREFIX} and 24 to 64 random bytes in base64")


def _network(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError:
        raise refused("Not a network", "Write it as 10.0.0.0/8") from None


Name = Annotated[str, Check(_name)]
Url = Annotated[str, Check(_address)]
Secret = Annotated[str, Check(_secret)]
Network = Annotated[str, Check(_network)]


CALLBACKS = "callbacks"
"""Name of the endpoint that stands for the callback URLs of all tasks."""


class Endpoint(Table):
    """URL to post events to, and their selection. All `secrets` sign, so that a receiver may know the old or the new
    one."""

    name: Name
    url: Url
    secrets: tuple[Secret, ...] = several((), "One, or while it is exchanged two.")
    events: tuple[str, ...] = several(("*",), "Patterns of names of events; `*` stands for anything.")
    namespace: str = ""
    at_once: int = whole(8, 1, 100, "Requests at the same time. Those of one task come one by one; with 1 all do.")
    enabled: bool = True


class WebhooksTable(Table):
    """The plugin `webhooks`: durable events of steps as signed HTTP requests."""

    endpoints: tuple[Endpoint, ...] = several(
        (),
        "Each a table `[[plugins.webhooks.endpoints]]` with `name`, `url`, `secrets`, and perhaps `events` (patterns "
        "of names), `namespace`, `at_once` (requests at the same time: 8, from 1 to 100) and `enabled`; `tasker "
        "webhook secret` makes a secret.",
    )
    callback_secrets: tuple[Secret, ...] = several(
        (),
        "Secrets that sign requests to the `callback_url` of tasks; without one, no callbacks are sent.",
    )
    attempts: int = whole(12, 1, 50, "How often an event is posted before it is given up.")
    first_retry_seconds: float = number(
        5.0, 0.05, 3600.0, "After so long it is posted again; each next time after twice as long."
    )
    longest_retry_seconds: float = number(
        21_600.0, 1.0, 86_400.0, "Maximum delay, even if the endpoint asks for a longer one."
    )
    timeout_seconds: float = number(
        15.0, 0.1, 120.0, "So long an endpoint may take for an answer, redirections included."
    )
    payload_limit_bytes: int = whole(
        262_144, 1024, 20_971_520, "A larger body is not posted; the event is given up at once."
    )
    hosts: tuple[str, ...] = several((), "Only these hosts are posted to, redirections included; empty: any.")
    private_networks: tuple[Network, ...] = several(
        (),
        "Networks of private, loopback or link-local addresses that may be posted to; others are refused.",
    )
    plain_http: bool = flag(
        False, "Also post to http:// URLs.", advice="Any host on the way can read and change what is sent."
    )

    def every(self) -> Sequence[Endpoint]:
        """Return the endpoints; the callback URLs of tasks are one of them if `callback_secrets` is set."""
        if not self.callback_secrets:
            return self.endpoints
        url = "the callback_url of each task"
        events = ("task.completed", "task.failed", "task.cancelled")
        secrets = self.callback_secrets
        return (*self.endpoints, Endpoint(name=CALLBACKS, url=url, secrets=secrets, events=events, at_once=32))

    def check(self) -> None:
        """Refuse endpoints at http:// unless `plain_http` allows them."""
        for endpoint in self.endpoints:
            if endpoint.name == CALLBACKS:
                raise refused(
                    f"The endpoint name {CALLBACKS} is reserved for callback URLs of tasks", "Choose another name"
                )
            if urlsplit(endpoint.url).scheme == "http" and not self.plain_http:
                issue = f"The endpoint {endpoint.name} is at http://, and plain_http is false"
                raise refused(issue, "Write https://, or set plugins.webhooks.plain_http = true")
