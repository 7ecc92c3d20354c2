"""Bodies and signatures, in the format of Standard Webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets as random_secrets
from collections.abc import Sequence
from typing import Any

from tasker_webhooks.table import PREFIX

CONTENT_TYPE = "application/cloudevents+json"
KEY_BYTES = 32


def new_secret() -> str:
    """Return a random secret for an endpoint."""
    return PREFIX + base64.b64encode(random_secrets.token_bytes(KEY_BYTES)).decode()


def headers(message_id: str, moment: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers for a body; `moment` in seconds since 1970.

    Each secret signs, so that either one verifies during a rotation.
    """
    signed = b".".join((message_id.encode(), str(moment).encode(), body))
    return {
        "content-type": CONTENT_TYPE,
        "webhook-id": message_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def body_of(event: Any) -> bytes:
    """Return a published event as JSON of CloudEvents 1.0, with the fields of its task as extension attributes."""
    metadata = event.metadata
    more = {
        "namespace": metadata.get("namespace"),
        "taskuuid": metadata.get("task_uuid"),
        "stepname": metadata.get("step_name"),
        "correlationid": metadata.get("correlation_id"),
        "outcome": metadata.get("outcome"),
        "attempt": metadata.get("attempt"),
    }
    head = {name: getattr(event, name) for name in ("specversion", "id", "source", "type", "subject", "time")}
    attributes = {**head, "datacontenttype": event.datacontenttype, **{k: v for k, v in more.items() if v is not None}}
    return json.dumps({**attributes, "data": event.payload}, ensure_ascii=False, separators=(",", ":")).encode()
