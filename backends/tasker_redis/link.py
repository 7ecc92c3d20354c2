"""Connection to the server, and the scripts that run there atomically."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import files
from typing import Any, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ConnectionError, RedisError, TimeoutError

from tasker.errors import BackendUnavailable, MessagingError
from tasker_redis.settings import RedisSettings

REPLY_SECONDS = 15.0
"""Maximum time for an answer of the server."""

SWALLOWED_SECONDS = 0.05
"""Time after which an ineffective cancellation is repeated."""

SCRIPTS = ("create", "delete", "send", "receive", "settle", "look", "stats")


class Link:
    """Bounded pool of connections. The next call replaces a lost one, and fails if it cannot."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._redis: Redis | None = None
        self._scripts: dict[str, Any] = {}

    async def open(self) -> None:
        """Connect unless already connected. Raises `BackendUnavailable`."""
        if self._redis is None:
            client = self._client(self._settings.max_connections)
            self._scripts = {name: client.register_script(_source(name)) for name in SCRIPTS}
            with self.errors():
                await client.ping()
            self._redis = client

    async def close(self) -> None:
        client, self._redis = self._redis, None
        if client is not None:
            await client.aclose()

    @property
    def redis(self) -> Redis:
        """Client of the open connection. Raises `BackendUnavailable` if it is not open."""
        if self._redis is None:
            raise BackendUnavailable("the connection to Redis is not open", hint="call open() first")
        return self._redis

    async def run(self, script: str, keys: list[str], *args: object) -> Any:
        """Return the answer of a script, or None if its queue does not exist."""
        client = self.redis
        with self.errors():
            return await interruptible(self._scripts[script](keys, args, client))

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[Redis]:
        """Return a client with a connection of its own, for a call that waits."""
        client = self._client(1)
        try:
            yield client
        finally:
            await client.aclose()

    def _client(self, connections: int) -> Redis:
        seconds = self._settings.connection_timeout_seconds
        try:
            pool = BlockingConnectionPool.from_url(
                self._settings.url,
                max_connections=connections,
                timeout=REPLY_SECONDS,
                socket_connect_timeout=seconds,
                socket_timeout=REPLY_SECONDS,
                retry=Retry(NoBackoff(), 1),  # once: the connection may have been lost while it was idle
            )
        except ValueError:  # its message may contain a part of the password
            hint = "it should look like redis://localhost:6379/0"
            raise MessagingError("the address of Redis is not usable", retryable=False, hint=hint) from None
        return Redis.from_pool(cast(Any, pool))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Convert errors of the client library to `MessagingError`."""
        try:
            yield
        except (ConnectionError, TimeoutError, OSError) as error:
            hint = "check the server's address and that it is running; an open backend reconnects automatically"
            may_recover = not isinstance(error, AuthenticationError)
            raise BackendUnavailable(f"Redis does not answer: {error}", retryable=may_recover, hint=hint) from error
        except RedisError as error:
            raise MessagingError(f"Redis refused a call: {error}") from error


async def interruptible(call: Awaitable[Any]) -> Any:
    """Return the result of the call. The client may swallow a cancellation, so it is repeated until the call ends."""
    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait([task])
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=SWALLOWED_SECONDS)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it when this call was cancelled
    return task.result()


def _source(name: str) -> str:
    folder = files("tasker_redis") / "lua"
    return "\n".join((folder / f"{part}.lua").read_text("utf-8") for part in ("queue", name))
