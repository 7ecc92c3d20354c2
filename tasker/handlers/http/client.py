"""HTTP requests of a handler over one pool per event loop; the trace context is passed on.

The async methods use one pool per event loop.
"""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from tasker.logging.current_step import running

if TYPE_CHECKING:
    import httpx

_Kept = tuple["httpx.AsyncClient", AsyncGenerator[None, None] | None]


class LoopClients:
    """Clients by event loop: in a thread or a child process each call of an async handler runs in a loop of its own.

    A client is closed when its loop ends: `asyncio.run` closes the loop's async generators first, and one of them waits
    here to close the client.
    """

    def __init__(self) -> None:
        self._kept: dict[asyncio.AbstractEventLoop | None, _Kept] = {}

    def get(self) -> httpx.AsyncClient | None:
        """Return the client of the running loop, or the one made outside a loop if none runs; None if there is none."""
        entry = self._kept.get(_running_loop())
        return entry[0] if entry else None

    def store(self, client: httpx.AsyncClient) -> None:
        """Store the client for the running loop."""
        loop = _running_loop()
        end = None if loop is None else self._at_its_end(loop, client)
        if end is not None:
            with suppress(StopIteration):
                end.__anext__().send(None)
        for known_loop in list(self._kept):  # a copy, because other threads may add their clients meanwhile
            if known_loop is not None and known_loop.is_closed():
                # a loop that ended without closing its generators: its connections can no longer be closed
                self._kept.pop(known_loop, None)
        self._kept[loop] = (client, end)

    async def close(self) -> None:
        """Close the client of the running loop, and the one made outside a loop."""
        for loop in (_running_loop(), None):
            if entry := self._kept.pop(loop, None):
                client, end = entry
                await (client.aclose() if end is None else end.aclose())

    async def _at_its_end(
        self, loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            if (entry := self._kept.get(loop)) and entry[0] is client:
                self._kept.pop(loop, None)
            await client.aclose()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


R = TypeVar("R")

_creating = threading.Lock()


def _carry_trace(request: httpx.Request) -> None:
    """Add the trace context of the running step to the request unless the request has one."""
    claim = running.get()
    if claim is not None and "traceparent" not in request.headers and (trace := claim.propagated_trace) is not None:
        request.headers.update(trace.headers())


async def _acarry_trace(request: httpx.Request) -> None:
    _carry_trace(request)


class ApiClient(Generic[R]):
    """Adds HTTP methods, which return `_api_answer` of the response. Paths are relative to `base_url`."""

    base_url: str = ""
    default_timeout: float = 30.0
    default_headers: ClassVar[dict[str, str]] = {}
    guarded: ClassVar[bool] = False
    """True to connect only to public addresses and `private_networks`, where a URL comes from somebody else."""
    private_networks: ClassVar[tuple[str, ...]] = ()
    _client: httpx.Client | None = None
    _async_clients: LoopClients | None = None

    def __init__(self) -> None:
        super().__init__()

    @property
    def api_capabilities(self) -> list[str]:
        """Capabilities that this mixin adds."""
        return ["http", "api"]

    @property
    def client(self) -> httpx.Client:
        """Connection pool, created at first use and kept until `close`."""
        with _creating:
            if self._client is None:
                import httpx

                guard: dict[str, Any] = {}
                if self.guarded:
                    from tasker.outgoing import guarded_transport

                    guard["transport"] = guarded_transport(self.private_networks)
                self._client = httpx.Client(**self._settings(), **guard, event_hooks={"request": [_carry_trace]})
                self.configure_session(self._client)
            return self._client

    @property
    def http_client(self) -> httpx.Client:
        """Connection pool; see `client`."""
        return self.client

    @property
    def async_client(self) -> httpx.AsyncClient:
        """Connection pool of the async methods in the running loop, kept until `aclose` or the end of the loop."""
        client = self._async_client
        if client is None:
            import httpx

            guard: dict[str, Any] = {}
            if self.guarded:
                from tasker.outgoing import guarded_async_transport

                guard["transport"] = guarded_async_transport(self.private_networks)
            client = httpx.AsyncClient(**self._settings(), **guard, event_hooks={"request": [_acarry_trace]})
            self.configure_session(client)
            self._async_client = client
        return client

    @property
    def _async_client(self) -> httpx.AsyncClient | None:
        return None if self._async_clients is None else self._async_clients.get()

    @_async_client.setter
    def _async_client(self, client: httpx.AsyncClient) -> None:
        with _creating:
            if self._async_clients is None:
                self._async_clients = LoopClients()
        self._async_clients.store(client)

    def configure_session(self, session: httpx.Client | httpx.AsyncClient) -> None:
        """Configure a new client; override it to set headers, auth or timeouts. Called once per client."""

    def _settings(self) -> dict[str, Any]:
        return {"base_url": self.base_url, "timeout": self.default_timeout, "headers": dict(self.default_headers)}

    def close(self) -> None:
        """Close the connections of the sync methods; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections of the async methods in the running loop."""
        if self._async_clients is not None:
            await self._async_clients.close()

    def request(self, method: str, path: str, **kwargs: Any) -> R:
        """Send a request with any method; `kwargs` are passed to httpx."""
        return self._api_answer(self.client.request(method, path, **kwargs))

    def get(
        self, path: str, params: dict[str, Any] | None = None, headers: dict[str, str] | None = None, **kwargs: Any
    ) -> R:
        """Send a GET request."""
        return self._api_answer(self.client.request("GET", path, params=params, headers=headers, **kwargs))

    def post(
        self,
        path: str,
        json: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> R:
        """Send a POST request with `json`, or `data` as a form."""
        return self._api_answer(self.client.request("POST", path, json=json, data=data, headers=headers, **kwargs))

    def put(
        self,
        path: str,
        json: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> R:
        """Send a PUT request with `json`, or `data` as a form."""
        return self._api_answer(self.client.request("PUT", path, json=json, data=data, headers=headers, **kwargs))

    def patch(
        self,
        path: str,
        json: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> R:
        """Send a PATCH request with `json`, or `data` as a form."""
        return self._api_answer(self.client.request("PATCH", path, json=json, data=data, headers=headers, **kwargs))

    def delete(self, path: str, headers: dict[str, str] | None = None, **kwargs: Any) -> R:
        """Send a DELETE request."""
        return self._api_answer(self.client.request("DELETE", path, headers=headers, **kwargs))

    async def arequest(self, method: str, path: str, **kwargs: Any) -> R:
        """Send a request with any method without blocking the event loop; `kwargs` are passed to httpx."""
        return self._api_answer(await self.async_client.request(method, path, **kwargs))

    async def aget(self, path: str, **kwargs: Any) -> R:
        """Send a GET request; accepts the arguments of `get`."""
        return self._api_answer(await self.async_client.request("GET", path, **kwargs))

    async def apost(self, path: str, json: dict[str, Any] | None = None, **kwargs: Any) -> R:
        """Send a POST request; accepts the arguments of `post`."""
        return self._api_answer(await self.async_client.request("POST", path, json=json, **kwargs))

    async def aput(self, path: str, json: dict[str, Any] | None = None, **kwargs: Any) -> R:
        """Send a PUT request; accepts the arguments of `put`."""
        return self._api_answer(await self.async_client.request("PUT", path, json=json, **kwargs))

    async def apatch(self, path: str, json: dict[str, Any] | None = None, **kwargs: Any) -> R:
        """Send a PATCH request; accepts the arguments of `patch`."""
        return self._api_answer(await self.async_client.request("PATCH", path, json=json, **kwargs))

    async def adelete(self, path: str, **kwargs: Any) -> R:
        """Send a DELETE request; accepts the arguments of `delete`."""
        return self._api_answer(await self.async_client.request("DELETE", path, **kwargs))

    @abstractmethod
    def _api_answer(self, response: httpx.Response) -> R:
        """Convert a response to the return value of the HTTP methods."""
