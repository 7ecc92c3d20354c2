"""Plugin `notify`: the step `tasker.notify` sends a message to a target of the worker's configuration."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import field
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tasker.dataclasses import dataclass
from tasker.errors import AuthenticationError, ConfigurationError, PermanentError, RetryableError
from tasker.handlers.builtin import INVALID_INPUTS, BuiltinHandler, seconds_left
from tasker.handlers.context import StepContext
from tasker.handlers.results import StepHandlerResult
from tasker.known_secrets import KNOWN
from tasker.outgoing import AddressRefused, guarded_thread
from tasker.plugins.hooks import hookimpl
from tasker.resources.tables import networks_of, number_of, refuse_unknown, revealed
from tasker.secrets import Secret
from tasker.template.builtin import BUILTIN, NOTIFY

STATUS = re.compile(r"\berror\s*[=:]\s*(\d{3})\b")
SHORTEST_PART = 8
"""Minimum length of a part of a secret URL that counts as a secret itself."""
RETRIED = frozenset((408, 425, 429))


@dataclass(frozen=True, slots=True)
class NotifyResource:
    """One target, a URL of apprise."""

    url: str = field(repr=False)
    networks: Sequence[str] = ()
    timeout_seconds: float = 20.0
    kind: str = "notify"

    def send(self, title: str, text: str, severity: str, seconds: float | None = None) -> None:
        """Send a message. Raises the failure of a step, with the status of the service but without its answer."""
        limit = self.timeout_seconds if seconds is None else min(seconds, self.timeout_seconds)
        with _Heard() as heard, guarded_thread(self.networks) as refused:
            try:
                sent = _target(self.url, limit).notify(body=text, title=title, notify_type=severity)
            except AddressRefused:
                sent = False
            except (TypeError, ValueError) as error:
                message = f"the target cannot send this message: {type(error).__name__}"
                raise PermanentError(message, error_code=INVALID_INPUTS) from None
        if refused:
            raise PermanentError(refused[0], error_code="address_refused")
        if not sent:
            raise _failure(heard.status)


def _target(url: str, seconds: float) -> Any:
    """Return a new object of apprise: it is not made for several threads. None for an invalid URL."""
    import apprise  # needed for resources of this kind only

    target = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    if target is not None:
        target.socket_read_timeout = target.socket_connect_timeout = seconds
    return target


def _failure(status: int | None) -> Exception:
    if status is None:
        return RetryableError("the target was not reached, or did not accept the message", error_code="not_sent")
    message, code = f"the target answered {status}", f"HTTP_{status}"
    if status in (401, 403):
        return AuthenticationError(message, error_code=code)
    return (RetryableError if status in RETRIED or status >= 500 else PermanentError)(message, error_code=code)


class _Heard(logging.Handler):
    """Status that apprise logs in this thread. Its lines are not passed on: they may have parts of the URL."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._thread, self.status = threading.get_ident(), None

    status: int | None

    def emit(self, record: logging.LogRecord) -> None:
        """Take the status of a line of this thread."""
        if record.thread == self._thread and (match := STATUS.search(record.getMessage())):
            self.status = int(match[1])

    def __enter__(self) -> _Heard:
        logging.getLogger("apprise").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("apprise").removeHandler(self)


def make_notify(settings: Mapping[str, Any]) -> NotifyResource:
    """Make the resource of a table. Raises `ConfigurationError`, which does not show the URL."""
    refuse_unknown("notify", settings)
    logger = logging.getLogger("apprise")
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    url = revealed(settings.get("url", ""))
    if isinstance(settings.get("url"), Secret):
        _know_parts(url)
    seconds = number_of(settings, "timeout_seconds", 20)
    if _target(url, seconds) is None:
        raise ConfigurationError("url: expected a URL of apprise, such as mailtos://user:password@example.com")
    return NotifyResource(url, networks_of(settings), seconds)


def _know_parts(url: str) -> None:
    """Add the tokens of a secret URL to the known secrets: services receive them apart from each other."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    texts = [parts.password or "", *parts.path.split("/"), *(value for _, value in parse_qsl(parts.query))]
    if "." not in host and host != "localhost":  # a token in the place of a host
        texts.append(parts.netloc.rpartition("@")[2])
    for text in texts:
        if len(text) >= SHORTEST_PART and any(character.isdigit() for character in text):
            KNOWN.add(text)


class Notify(BuiltinHandler):
    """Sends a message. It runs in a thread."""

    handler_name = NOTIFY
    step = BUILTIN[NOTIFY]

    def call(self, context: StepContext) -> StepHandlerResult:
        """Send the message; a further attempt may send it again."""
        inputs = self.inputs(context)
        resource = context.resource(inputs["resource"])
        if not isinstance(resource, NotifyResource):
            raise PermanentError(f"the resource `{inputs['resource']}` is not of the kind notify")
        resource.send(inputs.get("title", ""), inputs["text"], inputs.get("severity", "info"), seconds_left(context))
        return self.success({"sent": True})


@hookimpl
def tasker_configured() -> None:
    """Raise `RuntimeError` without apprise."""
    if find_spec("apprise") is None:
        raise RuntimeError('it needs apprise: pip install "tasker-engine[notify]"')


@hookimpl
def tasker_handlers() -> list[type[BuiltinHandler]]:
    """Return the handler."""
    return [Notify]
