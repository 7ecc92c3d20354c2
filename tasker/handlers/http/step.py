"""Handler of the built-in step `tasker.http`: one request to a resource, or one for each page."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from tasker.errors import AuthenticationError, PermanentError, RetryableError
from tasker.handlers.builtin import read_inputs, seconds_left
from tasker.handlers.context import StepContext
from tasker.handlers.dependency_results import dig
from tasker.handlers.http.response import ApiResponse
from tasker.handlers.results import StepHandlerResult
from tasker.handlers.step_handler import StepHandler
from tasker.template.builtin import HTTP

if TYPE_CHECKING:
    import httpx

OUTCOME_UNKNOWN = "outcome_unknown"
IDEMPOTENT = frozenset(("GET", "HEAD", "PUT", "DELETE"))
"""Methods that RFC 9110 calls idempotent: repeating one has the effect of sending it once."""
NOT_PROCESSED = frozenset((408, 425, 429, 503))
"""Statuses that say that the request had no effect."""
UNCLEAR = frozenset((500, 502, 504))
SHOWN_HEADERS = ("content-type", "etag", "last-modified", "location", "link")
MOST_PAGES = 100


class HttpRequest(StepHandler):
    """Sends a request to a resource of the kind `http`. It runs in a thread."""

    handler_name = HTTP

    def call(self, context: StepContext) -> StepHandlerResult:
        """Send the request, and return status, chosen headers and the body, or the items of all pages."""
        inputs = read_inputs(context, HTTP)
        resource = context.resource(inputs["resource"])
        if getattr(resource, "kind", None) != "http":
            raise PermanentError(f"the resource `{inputs['resource']}` is not of the kind http")
        if "json" in inputs and "text" in inputs:
            raise PermanentError("`json` and `text` exclude each other", error_code="invalid_inputs")
        exchange = Exchange(context, resource, inputs)
        return self.success(exchange.all_pages() if "pages" in inputs else exchange.one())


class Exchange:
    """Requests of one attempt to a resource, with failures classified by the method and the status."""

    def __init__(self, context: StepContext, resource: Any, inputs: Mapping[str, Any]) -> None:
        self._context, self._resource, self._inputs = context, resource, inputs
        self._method = inputs.get("method", "GET")
        self._started = monotonic()
        self._repeatable = inputs.get("idempotent", self._method in IDEMPOTENT)

    def one(self) -> dict[str, Any]:
        """Send the request and return status, chosen headers and the body."""
        response = self._answer(self._inputs.get("path", "/"), self._inputs.get("query"))
        headers = {name: response.headers[name] for name in SHOWN_HEADERS if name in response.headers}
        return {"status": response.status_code, "headers": headers, **self._body(response)}

    def all_pages(self) -> dict[str, Any]:
        """Return the items of the pages; each names the next one by an absolute URL or a path below the base URL."""
        wanted, items, seen = self._inputs["pages"], list[Any](), set[str]()
        most = wanted.get("most", MOST_PAGES)
        path, query = self._inputs.get("path", "/"), self._inputs.get("query")
        while True:
            response = self._answer(path, query)
            page = self._json(response)
            part = dig(page, tuple(wanted["items"].split(".")))
            if not isinstance(part, list):
                raise PermanentError(f"pages.items: the response has no list `{wanted['items']}`")
            items += part
            seen.add(path)
            following = dig(page, tuple(wanted["next"].split(".")))
            if following in (None, "", False):
                return {"items": items, "pages": len(seen)}
            if not isinstance(following, str):
                raise PermanentError(f"pages.next: `{wanted['next']}` is neither a URL nor null")
            path, query = str(response.request.url.join(following)), None
            if path in seen:
                raise PermanentError(f"pages.next: page {len(seen)} leads back to an earlier one")
            if len(seen) >= most:
                raise PermanentError(f"there are more than {most} pages", error_code="too_many_pages")

    def _answer(self, path: str, query: Any) -> httpx.Response:
        import httpx

        from tasker.outgoing import AddressRefused

        inputs = self._inputs
        own = dict(self._context.trace_headers)
        if self._method not in IDEMPOTENT:
            own["Idempotency-Key"] = f"tasker:{self._context.task_uuid}:{self._context.step_name}"
        if "text" in inputs:
            own["Content-Type"] = "text/plain; charset=utf-8"
        headers = dict(inputs.get("headers", {}))
        given_names = {name.lower() for name in headers}
        headers |= {name: value for name, value in own.items() if name.lower() not in given_names}
        content = {key: inputs[given] for key, given in (("json", "json"), ("content", "text")) if given in inputs}
        try:
            response: httpx.Response = self._resource.send(
                self._method,
                path,
                params=query,
                headers=headers,
                seconds=seconds_left(self._context, self._started),
                **content,
            )
        except AddressRefused as error:
            raise PermanentError(str(error), error_code="address_refused") from None
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise RetryableError(f"no connection: {error}", error_code="not_connected") from None
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise PermanentError(f"invalid request: {error}", error_code="invalid_inputs") from None
        except UnicodeError:  # half of a surrogate pair
            raise PermanentError("invalid request: not valid Unicode", error_code="invalid_inputs") from None
        except httpx.TransportError as error:
            raise self._unclear(f"{type(error).__name__}: {error}".rstrip(": ")) from None
        return self._accepted(response)

    def _accepted(self, response: httpx.Response) -> httpx.Response:
        """Return the response if its status is expected, and raise the failure that it stands for otherwise."""
        status, expected = response.status_code, self._inputs.get("expect")
        if status in expected if expected else 200 <= status < 300:
            return response
        answer = ApiResponse(response)
        message = f"{answer.describe()}: {response.text[:500]}".rstrip(": ")
        if status in NOT_PROCESSED:
            raise RetryableError(message, error_code=f"HTTP_{status}", retry_after=answer.retry_after)
        if status in UNCLEAR:
            raise self._unclear(message)
        if status in (401, 403):
            raise AuthenticationError(message, error_code=f"HTTP_{status}")
        raise PermanentError(message, error_code=f"HTTP_{status}")

    def _unclear(self, message: str) -> Exception:
        if self._repeatable:
            return RetryableError(message, error_code=OUTCOME_UNKNOWN)
        hint = "set `idempotent: true` if the service may get the request twice"
        return PermanentError(f"{message}: {self._method} may have taken effect", error_code=OUTCOME_UNKNOWN, hint=hint)

    def _body(self, response: httpx.Response) -> dict[str, Any]:
        form = self._inputs.get("response", "json" if "json" in response.headers.get("content-type", "") else "text")
        if form == "none" or not response.content:
            return {}
        return {"json": self._json(response)} if form == "json" else {"text": response.text}

    def _json(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError as error:
            raise PermanentError(f"the response is not JSON: {error}", error_code="invalid_response") from None
