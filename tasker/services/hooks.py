"""Verification of signed requests of other systems, and the events that are made of them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasker.errors import NotAuthenticated, UsageError
from tasker.services.incoming_events import MOST_KEY
from tasker.settings.hooks import IncomingHook

PREFIX = "whsec_"
"""Beginning of secrets whose key is written in base64, as those of Tasker's own webhooks."""
ID, TIME = "webhook-id", "webhook-timestamp"
MOST_SIGNATURES = 20
NAMESPACE = "default"


def verify(hook: IncomingHook, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: float) -> None:
    """Check the signature of a request with one of the secrets, and its time.

    `headers` finds names in any case, or has them in lower case; `now` is in seconds since 1970. Raises
    `NotAuthenticated`, with the same message for every reason.
    """
    signed, signatures = _signed(hook, headers, body, now)
    matches = False
    for key in filter(None, (_key(secret, hook) for secret in secrets)) if signatures else ():
        expected = hmac.digest(key, signed, hashlib.sha256)
        for given in signatures:  # all of them: the time says nothing about which one matched
            matches |= hmac.compare_digest(expected, given)
    if not matches:
        raise NotAuthenticated("the signature of the request is missing or not valid", reason="invalid_signature")


def _signed(hook: IncomingHook, headers: Mapping[str, str], body: bytes, now: float) -> tuple[bytes, Sequence[bytes]]:
    """Return what is signed, and the signatures that the request has for it."""
    text = headers.get(hook.header.lower(), "")
    if hook.signature == "body":
        given = text[len(hook.prefix) :].strip() if text.startswith(hook.prefix) else ""
        return body, list(_decoded(given, hook.encoding))
    if hook.signature == "timestamp":
        parts = [part.strip().partition("=") for part in text.split(",")[:MOST_SIGNATURES]]
        moment, encoding = next((value for name, _, value in parts if name == "t"), ""), hook.encoding
        signed = f"{moment}."
    else:
        parts = [part.partition(",") for part in text.split()[:MOST_SIGNATURES]]
        moment, encoding = headers.get(TIME, ""), "base64"
        signed = f"{headers.get(ID, '')}.{moment}."
    if not _is_recent(moment, hook, now):
        return b"", ()
    values = (value for name, _, value in parts if name == "v1")
    return signed.encode() + body, [given for value in values for given in _decoded(value, encoding)]


def _is_recent(moment: str, hook: IncomingHook, now: float) -> bool:
    is_number = moment.isascii() and moment.isdigit() and len(moment) < 15
    return is_number and abs(now - int(moment)) <= hook.tolerance_seconds


def _decoded(text: str, encoding: str) -> Iterator[bytes]:
    try:
        yield bytes.fromhex(text) if encoding == "hex" else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return


def _key(secret: str, hook: IncomingHook) -> bytes:
    """Return the key of a secret, empty for one without a key: anybody could sign with that."""
    if hook.signature != "standard" or not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:  # not base64: the text itself is the key
        return secret.encode()


def event_of(name: str, hook: IncomingHook, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Return the arguments of the event that a verified request becomes. Raises `UsageError`."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        raise UsageError("the body is not JSON", hint="let the other system send application/json") from None
    options: dict[str, Any] = {"exclusive": hook.exclusive, "keep": hook.keep_hours * 3600.0, "by": f"hook {name}"}
    if hook.key:
        options["key"] = _value(payload, hook.key, "key")
    header = hook.dedupe_header or (ID if hook.signature == "standard" and not hook.dedupe_path else "")
    if header:
        options["dedupe_id"] = _identifier(headers.get(header.lower()), f"the header {header}")
    elif hook.dedupe_path:
        value = str(_value(payload, hook.dedupe_path, "dedupe_path"))
        options["dedupe_id"] = _identifier(value, hook.dedupe_path)
    return {"namespace": hook.namespace or NAMESPACE, "name": hook.event or name, "payload": payload, **options}


def _value(payload: Any, path: str, setting: str) -> str | int:
    value = payload
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise UsageError(f"the body has no text or integer at {path}", hint=f"see the setting {setting} of the hook")
    return value


def _identifier(value: str | None, what: str) -> str:
    if not value or len(value) > MOST_KEY or not value.isprintable():
        raise UsageError(f"{what}: expected an identifier of the request of 1 to {MOST_KEY} characters")
    return value
