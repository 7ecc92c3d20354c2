"""HTTP calls from a handler, sync and async, and their translation into results (D-125 .. D-129)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar

from tasker.step_handler.mixins.api_response import ApiResponse
from tasker.types import StepHandlerResult

if TYPE_CHECKING:
    import httpx

__all__ = ["APIMixin", "ApiResponse"]

_creating = threading.Lock()


class APIMixin:
    """Adds HTTP verbs. Paths are relative to `base_url`; timeouts are seconds.

    Every verb answers an `ApiResponse` whatever the status; a connection that fails raises httpx's own exception, which
    makes a retryable failure (`network_error`, `timeout`) unless the handler catches it. `get` and the others block and
    are for plain handlers; `aget` and the others are for `async def call`.
    """

    base_url: str = ""
    default_timeout: float = 30.0
    default_headers: ClassVar[dict[str, str]] = {}
    _client: httpx.Client | None = None
    _async_client: httpx.AsyncClient | None = None

    def __init__(self) -> None:
        super().__init__()

    @property
    def api_capabilities(self) -> list[str]:
        """What this mixin adds."""
        return ["http", "api"]

    @property
    def client(self) -> httpx.Client:
        """The connection pool, made at first use and kept until `close`."""
        with _creating:
            if self._client is None:
                import httpx

                self._client = httpx.Client(**self._settings())
                self.configure_session(self._client)
            return self._client

    @property
    def http_client(self) -> httpx.Client:
        """The same as `client`."""
        return self.client

    @property
    def async_client(self) -> httpx.AsyncClient:
        """The connection pool of the async verbs, made at first use and kept until `aclose`."""
        if self._async_client is None:
            import httpx

            self._async_client = httpx.AsyncClient(**self._settings())
            self.configure_session(self._async_client)
        return self._async_client

    def configure_session(self, session: httpx.Client | httpx.AsyncClient) -> None:
        """Called once with each new client: override it to set headers, auth or timeouts."""

    def _settings(self) -> dict[str, Any]:
        return {"base_url": self.base_url, "timeout": self.default_timeout, "headers": dict(self.default_headers)}

    def close(self) -> None:
        """Close the connections of the plain verbs; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections of the async verbs."""
        client, self._async_client = self._async_client, None
        if client is not None:
            await client.aclose()

    def request(self, method: str, path: str, **kwargs: Any) -> ApiResponse:
        """Any method; `kwargs` go to httpx."""
        return ApiResponse(self.client.request(method, path, **kwargs))

    def get(
        self, path: str, params: dict[str, Any] | None = None, headers: dict[str, str] | None = None, **kwargs: Any
    ) -> ApiResponse:
        """GET."""
        return self.request("GET", path, params=params, headers=headers, **kwargs)

    def post(
        self,
        path: str,
        json: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> ApiResponse:
        """POST `json`, or `data` as a form."""
        return self.request("POST", path, json=json, data=data, headers=headers, **kwargs)

    def put(
        self,
        path: str,
        json: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> ApiResponse:
        """PUT `json`, or `data` as a form."""
        return self.request("PUT", path, json=json, data=data, headers=headers, **kwargs)

    def patch(
        self,
        path: str,
        json: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> ApiResponse:
        """PATCH `json`, or `data` as a form."""
        return self.request("PATCH", path, json=json, data=data, headers=headers, **kwargs)

    def delete(self, path: str, headers: dict[str, str] | None = None, **kwargs: Any) -> ApiResponse:
        """DELETE."""
        return self.request("DELETE", path, headers=headers, **kwargs)

    async def arequest(self, method: str, path: str, **kwargs: Any) -> ApiResponse:
        """Any method, without blocking the loop; `kwargs` go to httpx."""
        return ApiResponse(await self.async_client.request(method, path, **kwargs))

    async def aget(self, path: str, **kwargs: Any) -> ApiResponse:
        """GET; takes what `get` takes."""
        return await self.arequest("GET", path, **kwargs)

    async def apost(self, path: str, json: dict[str, Any] | None = None, **kwargs: Any) -> ApiResponse:
        """POST; takes what `post` takes."""
        return await self.arequest("POST", path, json=json, **kwargs)

    async def aput(self, path: str, json: dict[str, Any] | None = None, **kwargs: Any) -> ApiResponse:
        """PUT; takes what `put` takes."""
        return await self.arequest("PUT", path, json=json, **kwargs)

    async def apatch(self, path: str, json: dict[str, Any] | None = None, **kwargs: Any) -> ApiResponse:
        """PATCH; takes what `patch` takes."""
        return await self.arequest("PATCH", path, json=json, **kwargs)

    async def adelete(self, path: str, **kwargs: Any) -> ApiResponse:
        """DELETE; takes what `delete` takes."""
        return await self.arequest("DELETE", path, **kwargs)

    def api_success(
        self, response: ApiResponse, result: dict[str, Any] | None = None, include_response: bool = True
    ) -> StepHandlerResult:
        """A success with the response's body, or with `result`.

        `include_response` keeps the status in the metadata. Raises `StepExecutionError` when the status is not 2xx.
        """
        body = response.json()
        plain = body if isinstance(body, dict) else {"body": body}
        metadata = {"status_code": response.status_code} if include_response else None
        return StepHandlerResult.success(plain if result is None else result, metadata)

    def api_failure(self, response: ApiResponse, message: str | None = None) -> StepHandlerResult:
        """A failure classified by the status; `Retry-After` is honoured."""
        return StepHandlerResult.failure(
            message or response.describe(),
            response.error_type,
            response.is_retryable,
            response.failure_metadata(),
            f"HTTP_{response.status_code}",
        )

    def connection_error(self, error: Exception, context: str | None = None) -> StepHandlerResult:
        """A retryable failure for a connection that could not be made or broke; `context` says during what."""
        return _unreachable("connection failed", "network_error", error, context)

    def timeout_error(self, error: Exception, context: str | None = None) -> StepHandlerResult:
        """A retryable failure for an answer that did not come in time."""
        return _unreachable("timed out", "timeout", error, context)


def _unreachable(what: str, error_type: str, error: Exception, context: str | None) -> StepHandlerResult:
    prefix = f"{context}: " if context else ""
    metadata = {"exception_type": type(error).__name__}
    return StepHandlerResult.failure(f"{prefix}{what}: {error}", error_type, True, metadata)
