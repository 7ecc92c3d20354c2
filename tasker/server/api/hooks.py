"""Signed requests of other systems, which become events for steps that wait."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from fastapi import Request

from tasker.errors import ConfigurationError, HookNotFound, NotAuthenticated, UsageError
from tasker.known_secrets import KNOWN
from tasker.secrets import SecretReference, Secrets
from tasker.server.operation_routes import published_type
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.problems import refusals
from tasker.services.hooks import event_of, verify
from tasker.settings.hooks import IncomingHook
from tasker.views.incoming_events import SentEvent
from tasker.views.model import encode

routes = router("events")
_log = logging.getLogger("tasker.api")
_secrets = Secrets()


@routes.post("/v1/hooks/{name}", status_code=201, response_model=published_type(SentEvent), responses=refusals(404))
async def receive_hook(request: Request, name: str) -> Json:
    """Store the body of a request that another system has signed as an event for the steps that wait for it.

    It needs no credentials but the signature of the hook. 401 if that is missing, not valid or too old.
    """
    hook: IncomingHook | None = request.app.state.options.hooks.get(name)
    if hook is None:
        raise HookNotFound(f"no hook {name!r:.80}", hint="hooks are configured as [hooks.NAME]")
    body = await _body(request, hook.max_body_bytes)
    secrets = await asyncio.to_thread(_revealed, name, hook)
    try:
        verify(hook, request.headers, body, secrets, datetime.now(UTC).timestamp())
    except NotAuthenticated:
        _log.warning("hook_refused hook=%s reason=invalid_signature", name)
        raise
    sent = await program_of(request).incoming_events.send(**event_of(name, hook, request.headers, body))
    return Json(encode(SentEvent, sent), 200 if sent.duplicate else 201)


async def _body(request: Request, most: int) -> bytes:
    """Read the body, and no more than that: nobody knows yet who sends it."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise UsageError(f"the body has more than the {most:,} bytes of the hook", hint="see `max_body_bytes`")
    return bytes(body)


def _revealed(name: str, hook: IncomingHook) -> list[str]:
    """Return the secrets of a hook that can be read; the reason why another one cannot is logged."""
    found = []
    for text in hook.secrets:
        try:
            found.append(_secrets.get(SecretReference.parse(text)).reveal())
        except ConfigurationError as error:
            _log.error("hook_secret_missing hook=%s reason=%s", name, KNOWN.redact(str(error)))
    return found
