"""Clients of one process: created at first use, shared by attempts, and replaced when their secrets change."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import ConfigurationError, RetryableError
from tasker.known_secrets import KNOWN
from tasker.resources.tables import KIND, ResourceTables, factory_of, is_table
from tasker.secrets import Secret, Secrets

_log = logging.getLogger("tasker.resources")


class ResourceUnavailable(RetryableError):
    """A resource that could not be made; another attempt may succeed."""

    error_type = "resource_unavailable"


@dataclass(eq=False)
class Client:
    """One client, the secrets it was made with, and the number of attempts that use it."""

    value: Any
    secrets: list[Secret] = field(default_factory=list)
    owned: bool = True
    """False for a client that the program has made, which it closes itself."""
    users: int = 0
    replaced: bool = False

    def expired(self, now: datetime) -> bool:
        """Return True once a secret that it was made with has expired."""
        return any(secret.expires_at is not None and secret.expires_at <= now for secret in self.secrets)


class ResourceRegistry:
    """Resources of one process: one current client of each, and replaced clients that are still in use.

    All methods may be called from any thread.
    """

    def __init__(self, tables: ResourceTables, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.tables, self._now = tables, now
        self._secrets = Secrets(tables.secrets)
        self._clients: dict[str, Client] = {}
        self._locks = {name: threading.RLock() for name in tables.resources}
        self._closed = False

    @property
    def names(self) -> frozenset[str]:
        """Names of the resources."""
        return frozenset(self._locks)

    def for_attempt(self) -> AttemptResources:
        """Return the resources as one attempt uses them."""
        return AttemptResources(self)

    def acquire(self, name: str) -> Client:
        """Return the client of a resource for one more user. Raises `ResourceUnavailable`, `KeyError`."""
        with self._locks[name]:
            client = self._clients.get(name)
            if client is not None and client.expired(self._now()):
                self._retire(name)
                client = None
            if client is None:
                client = self._clients[name] = self._create(name)
            client.users += 1
            return client

    def is_made(self, name: str) -> bool:
        """Return True if a client exists and would be used by the next attempt."""
        client = self._clients.get(name)
        return client is not None and not client.expired(self._now())

    def release(self, name: str, client: Client) -> None:
        """Release one use of a client; a replaced client is closed after its last use."""
        with self._locks[name]:
            client.users -= 1
            if client.replaced and not client.users:
                _close_in_thread(name, client)

    def renew(self, name: str, client: Client) -> bool:
        """Read the secrets of a resource again; if one has changed since this client was made, replace it.

        Return True if the next attempt gets another client.
        """
        with self._locks[name]:
            if self._clients.get(name) is not client:
                return True  # another attempt has replaced it
            table = self.tables.resources[name]
            secrets = _secrets_in(self._secrets.resolved(table)) if is_table(table) else []
            if secrets == client.secrets:
                return False
            self._retire(name)
            _log.info("resource_renewed resource=%s", name)
            return True

    def close(self) -> None:
        """Close every client; later requests raise `ResourceUnavailable`."""
        self._closed = True
        for name, lock in self._locks.items():
            with lock:
                if (client := self._clients.pop(name, None)) is not None:
                    _close(name, client)

    def _retire(self, name: str) -> None:
        client = self._clients.pop(name)
        client.replaced = True
        if not client.users:
            _close_in_thread(name, client)

    def _create(self, name: str) -> Client:
        table = self.tables.resources[name]
        if self._closed:
            raise ResourceUnavailable(f"the resource `{name}` is closed: its worker is stopping")
        if not is_table(table):
            return Client(table, owned=False)
        try:
            settings = self._secrets.resolved({key: value for key, value in table.items() if key != KIND})
            return Client(factory_of(table[KIND])(settings), _secrets_in(settings))
        except Exception as error:
            if isinstance(error, ConfigurationError):
                why = f"{error.message}; {error.hint}" if error.hint else error.message
            else:
                why = f"{type(error).__name__}: {error}"
            raise ResourceUnavailable(f"the resource `{name}` cannot be made: {KNOWN.redact(why)}") from None


class AttemptResources(Mapping[str, Any]):
    """Resources of one attempt by name, each acquired when it is first read and released at the end of the attempt."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._acquired: dict[str, Client] = {}
        self._lock = threading.Lock()

    @property
    def tables(self) -> ResourceTables:
        """Tables from which another process can make the same resources."""
        return self._registry.tables

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            if name not in self._acquired:
                self._acquired[name] = self._registry.acquire(name)
            return self._acquired[name].value

    def __contains__(self, name: object) -> bool:
        return name in self._registry.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry.names)

    def __len__(self) -> int:
        return len(self._registry.names)

    def are_made(self, names: Iterable[str]) -> bool:
        """Return True if reading these resources does not have to make a client first."""
        return all(self._registry.is_made(name) for name in names)

    def acquire(self, names: Iterable[str]) -> None:
        """Acquire these resources, so that reading them later does not wait. Those that this process lacks are left."""
        for name in names:
            if name in self:
                self[name]

    def renew(self) -> list[str]:
        """Read the secrets of the used resources again; return the names of those that changed."""
        return [name for name, client in list(self._acquired.items()) if self._registry.renew(name, client)]

    def release(self) -> None:
        """Release every client that was acquired."""
        with self._lock:
            acquired, self._acquired = self._acquired, {}
        for name, client in acquired.items():
            self._registry.release(name, client)


def _secrets_in(value: Any) -> list[Secret]:
    if isinstance(value, Secret):
        return [value]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [secret for item in items for secret in _secrets_in(item)]


def _close_in_thread(name: str, client: Client) -> None:
    """Close a client in a thread, so that the attempt that used it last does not wait."""
    threading.Thread(target=_close, args=(name, client), name=f"close {name}", daemon=True).start()


def _close(name: str, client: Client) -> None:
    close = getattr(client.value, "close", None) or getattr(client.value, "aclose", None)
    if not client.owned or not callable(close):
        return
    try:
        if inspect.isawaitable(closing := close()):
            asyncio.run(_finished(closing))
    except Exception as error:
        _log.warning("resource_not_closed resource=%s: %s", name, error)


async def _finished(closing: Any) -> None:
    await closing
