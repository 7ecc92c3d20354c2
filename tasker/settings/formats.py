"""Validated texts: addresses, URLs, queue names, file name patterns."""

from __future__ import annotations

import re
from typing import Annotated

from tasker.redaction import ENCODE, is_clear
from tasker.settings.table import Check, refused, unclear, url_of

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):(\d{1,5})", re.ASCII)
SHORTEST_KEY = 16
SHORTEST_LINK_KEY = 32
CHANNEL_MAX_BYTES = 63
"""Maximum length of the name of a NOTIFY channel in PostgreSQL."""


def _address(value: str) -> str:
    match = _ADDRESS.fullmatch(value)
    if match and int(match[2]) <= 65_535:
        return value
    raise refused("Invalid IP:port format", 'Use format like "0.0.0.0:8080" or "127.0.0.1:3000"')


def _database_url(value: str) -> str:
    if value and not re.match(r"postgres(ql)?(\+\w+)?://", value):
        raise refused(
            "Not the URL of a PostgreSQL database", 'Use format like "postgresql://USER:PASSWORD@HOST:5432/DATABASE"'
        )
    if value and not is_clear(value):
        raise unclear(ENCODE)
    return value


def _channel(value: str) -> str:
    size = len(value.encode())
    if 1 <= size <= CHANNEL_MAX_BYTES:
        return value
    raise refused(f"Has {size} bytes; a channel's name has 1 to {CHANNEL_MAX_BYTES}", "Use a shorter name")


def _retention(value: str) -> str:
    from tasker.settings.retention import FORM, RetentionRule

    try:
        RetentionRule.parse(value)
    except ValueError as error:
        raise refused(str(error), f"Use format like {FORM}") from None
    return value


def _error_rule(value: str) -> str:
    from tasker.template.error_rules import FORM, parse_overrides

    try:
        parse_overrides(value)
    except ValueError as error:
        raise refused(str(error), f"Use format like {FORM}") from None
    return value


def _rate(value: str) -> str:
    from tasker.template.rates import RATE_EXPECTED, parse_rate

    if value and parse_rate(value) is None:
        raise refused("Not a rate", f"{RATE_EXPECTED[:1].upper()}{RATE_EXPECTED[1:]}")
    return value


def _tag(value: str) -> str:
    from tasker.template.names import NAME

    if re.fullmatch(NAME, value):
        return value
    raise refused("Not a valid tag", "Use letters, digits, `_`, `-` and `.`")


def _pattern(value: str) -> str:
    if value and value.count("{") == value.count("}"):
        return value
    raise refused("Not a pattern of file names", 'Use format like "templates/**/*.{yml,yaml}"')


def _callable_pattern(value: str) -> str:
    if re.fullmatch(r"\*|[^\W\d]\w*(\.[^\W\d]\w*)*(\.\*)?", value):
        return value
    raise refused("Not a path that a template may import", 'Use format like "my_project.*" or "my_project.pay.Charge"')


def _root_path(value: str) -> str:
    if not value or re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", value):
        return value
    raise refused("Not a path prefix of a proxy", 'Use format like "/tasker"')


def _origin(value: str) -> str:
    if value == "*" or re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+", value):
        return value
    raise refused("Not the origin of a page", 'Use format like "https://ops.example.com", without a path')


def _host_name(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]+", value):
        return value
    raise refused("Not a host name", 'Use format like "ops.example.com", without a port')


def _header(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9-]+", value, re.ASCII) and value.lower() != "authorization":
        return value
    raise refused("Not a valid header name for keys", 'Use format like "X-API-Key"')


def _grant(value: str) -> str:
    from tasker.operations.permissions import Grant

    try:
        Grant.of(value)
    except ValueError:
        raise refused("No such permission", "`tasker auth show-permissions` lists them") from None
    return value


def _key_secret(value: str) -> str:
    if value.startswith("sha256:"):
        if re.fullmatch(r"sha256:[0-9a-fA-F]{64}", value):
            return value
        raise refused("Not the digest of a key", "Write sha256: and 64 hexadecimal digits")
    if len(value) >= SHORTEST_KEY:
        return value
    raise refused(f"A key needs {SHORTEST_KEY} characters at least", "`tasker auth create-api-key` makes one")


def _link_key(value: str) -> str:
    if len(value) >= SHORTEST_LINK_KEY:
        return value
    raise refused(f"A key needs {SHORTEST_LINK_KEY} characters at least", "`openssl rand -base64 32` makes one")


Address = Annotated[str, Check(_address)]
DatabaseUrl = Annotated[str, Check(_database_url)]
Channel = Annotated[str, Check(_channel)]
Pattern = Annotated[str, Check(_pattern)]
RedisUrl = Annotated[str, url_of("redis", "rediss", "unix")]
CallablePattern = Annotated[str, Check(_callable_pattern)]
WebUrl = Annotated[str, url_of("http", "https")]
RootPath = Annotated[str, Check(_root_path)]
Origin = Annotated[str, Check(_origin)]
HostName = Annotated[str, Check(_host_name)]
HeaderName = Annotated[str, Check(_header)]
GrantText = Annotated[str, Check(_grant)]
KeySecret = Annotated[str, Check(_key_secret)]
LinkKey = Annotated[str, Check(_link_key)]
RetentionLine = Annotated[str, Check(_retention)]
Tag = Annotated[str, Check(_tag)]
RateText = Annotated[str, Check(_rate)]
ErrorRuleLine = Annotated[str, Check(_error_rule)]
