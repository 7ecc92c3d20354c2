"""One request to the receiver, and what its answer means."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from tasker_otel.table import OtelTable, pairs

PATH = "/v1/traces"
TRIED_AGAIN = frozenset((429, 502, 503, 504))
"""What OTLP asks to be tried again."""


class Refused(Exception):
    """The receiver does not take this request, and will not take it another time; the text says why."""


class Unreachable(Exception):
    """The receiver may take this request later; the text says why."""


class Receiver:
    """Where spans are posted to, over one connection that is kept. One thread at a time may use it.

    It is the standard library's: whoever traces the requests of a program with OpenTelemetry does not trace these.
    """

    def __init__(self, settings: OtelTable) -> None:
        self.url = settings.endpoint.rstrip("/") + PATH
        parts = urlsplit(self.url)
        self._headers = {**dict(pairs(settings.headers)), "Content-Type": "application/x-protobuf"}
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=settings.timeout_seconds)
        self._path = parts.path

    def post(self, body: bytes) -> None:
        """Raises `Refused` or `Unreachable` when it was not taken."""
        status = self._answer(body)
        if status in TRIED_AGAIN:
            raise Unreachable(f"it answers {status}")
        if not 200 <= status < 300:
            raise Refused(f"it answers {status}")

    def _answer(self, body: bytes) -> int:
        """The status. A connection that was kept may be closed by now, and is made anew once."""
        kept = self._connection.sock is not None
        try:
            return self._once(body)
        except (OSError, HTTPException) as error:
            if not kept or isinstance(error, TimeoutError):
                raise Unreachable(_told(error)) from error
        return self._anew(body)

    def _anew(self, body: bytes) -> int:
        try:
            return self._once(body)
        except (OSError, HTTPException) as error:
            raise Unreachable(_told(error)) from error

    def _once(self, body: bytes) -> int:
        try:
            self._connection.request("POST", self._path, body, self._headers)
            with self._connection.getresponse() as response:
                response.read()
                return response.status
        except BaseException:
            self._connection.close()
            raise


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
