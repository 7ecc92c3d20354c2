"""Texts with a form: addresses, URLs, queue names, patterns of file names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from tasker.contracts.messaging import ENCODE_URL, check_queue_name, is_clear_url
from tasker.errors import InvalidQueueName
from tasker.settings.redaction import ENCODE, is_clear

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):(\d{1,5})", re.ASCII)
CHANNEL_MAX_BYTES = 63
"""What PostgreSQL leaves of the name of a NOTIFY channel."""


def _wrong(issue: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("form", "{issue}", {"issue": issue, "fix": fix})


def _unclear(fix: str) -> PydanticCustomError:
    return _wrong("The parts of this URL cannot be told apart", f"{fix[:1].upper()}{fix[1:]}")


def _address(value: str) -> str:
    match = _ADDRESS.fullmatch(value)
    if match and int(match[2]) <= 65_535:
        return value
    raise _wrong("Invalid IP:port format", 'Use format like "0.0.0.0:8080" or "127.0.0.1:3000"')


def _database_url(value: str) -> str:
    if value and not re.match(r"postgres(ql)?(\+\w+)?://", value):
        raise _wrong(
            "Not the URL of a PostgreSQL database", 'Use format like "postgresql://USER:PASSWORD@HOST:5432/DATABASE"'
        )
    if value and not is_clear(value):
        raise _unclear(ENCODE)
    return value


def _orchestration_queue(value: str) -> str:
    try:
        name = check_queue_name(value)
    except InvalidQueueName as error:
        raise _wrong(f"Not the name of a queue: {error.message}", (error.hint or "").capitalize()) from None
    if name.startswith("orchestration"):
        return name
    raise _wrong(
        "Does not begin with 'orchestration': its messages would be announced where no orchestrator listens",
        "Begin the name with 'orchestration'",
    )


def _channel(value: str) -> str:
    size = len(value.encode())
    if 1 <= size <= CHANNEL_MAX_BYTES:
        return value
    raise _wrong(f"Has {size} bytes; a channel's name has 1 to {CHANNEL_MAX_BYTES}", "Use a shorter name")


def _pattern(value: str) -> str:
    if value and value.count("{") == value.count("}"):
        return value
    raise _wrong("Not a pattern of file names", 'Use format like "templates/**/*.{yml,yaml}"')


def _callable_pattern(value: str) -> str:
    if re.fullmatch(r"\*|[^\W\d]\w*(\.[^\W\d]\w*)*(\.\*)?", value):
        return value
    raise _wrong("Not a path that a template may import", 'Use format like "my_project.*" or "my_project.pay.Charge"')


def _name_prefix(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_]+", value, re.ASCII):
        return value
    raise _wrong("Holds a character that is not a letter, digit or '_'", "Use A-Z a-z 0-9 _")


def _url_of(*schemes: str, separator: str | None = None) -> AfterValidator:
    """A URL, or several between separators: those after the first one may lack the scheme."""

    def check(value: str) -> str:
        if not _begins_with(schemes, value):
            names = " or ".join(f"{name}://" for name in schemes)
            raise _wrong(f"Not a URL that begins with {names}", "Write the whole URL")
        if not all(map(is_clear_url, value.split(separator) if separator else [value])):
            raise _unclear(ENCODE_URL)
        return value

    return AfterValidator(check)


def _begins_with(schemes: Sequence[str], value: str) -> bool:
    with suppress(ValueError):  # a stray bracket
        parts = urlsplit(value)
        return parts.scheme in schemes and bool(parts.netloc or (parts.scheme == "unix" and parts.path))
    return False


Address = Annotated[str, AfterValidator(_address)]
DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
OrchestrationQueue = Annotated[str, AfterValidator(_orchestration_queue)]
Channel = Annotated[str, AfterValidator(_channel)]
Pattern = Annotated[str, AfterValidator(_pattern)]
AmqpUrl = Annotated[str, _url_of("amqp", "amqps")]
RedisUrl = Annotated[str, _url_of("redis", "rediss", "unix")]
NatsUrls = Annotated[str, _url_of("nats", "tls", "ws", "wss", separator=",")]
CallablePattern = Annotated[str, AfterValidator(_callable_pattern)]
NamePrefix = Annotated[str, AfterValidator(_name_prefix)]
WebUrl = Annotated[str, _url_of("http", "https")]
