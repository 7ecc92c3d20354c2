"""Pages that say what went wrong, with the way to try again; a form of which nothing came is shown as it was sent."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from fastapi import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from tasker.dataclasses import dataclass
from tasker.errors import TaskerError
from tasker.server.errors import Answering, answer
from tasker.server.web.forms import FIELD, Form, form_of, require_same_site
from tasker.server.web.rendering import ROOT, environment, page

NOT_SENT_AGAIN = (401, 403, 404, 405)
"""Statuses after which sending the form again changes nothing."""
NOT_READY = "not_ready"
"""Code of the problem of a server that starts: nothing has read the request yet."""
INPUT = "input:"
LABELS = {
    "context": "Input",
    "correlation_id": "Correlation identifier",
    "idempotency_key": "Idempotency key",
    "name": "Name",
    "note": "Reason",
    "notes": "Notes",
    "priority": "Priority",
    "rate": "Rate",
    "reason": "Reason",
    "result": "Result",
    "tags": "Tags",
    "text": "Template",
}
"""Of fields that people fill in; the others say what is meant, and are hidden."""
STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}"
)
_HASH = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class SentField:
    """A field of a form as it was sent; without a label it is hidden."""

    name: str
    value: str
    label: str | None
    secret: bool

    @property
    def is_long(self) -> bool:
        """Return True if the field needs a multi-line input."""
        return "\n" in self.value or self.name in ("notes", "result", "context", "text")


def failed(request: Request, problem: Mapping[str, Any], again: Form | None = None) -> Response:
    """Render the page of a problem; with a form to send `again`."""
    request.scope["state"]["problem"] = problem["code"]
    status = int(str(problem["status"]))
    response = page(request, "failed.html", status, problem=problem, again=fields_of(again) if again else ())
    if seconds := problem["error"].get("retry_after_seconds"):
        response.headers["Retry-After"] = str(seconds)
    return response


async def form_again(request: Request, status: int) -> Form | None:
    """The form of a request that failed; None for one that was not opened here, or that is of no use any more."""
    if request.method != "POST" or status in NOT_SENT_AGAIN:
        return None
    return await own_form(request)


async def own_form(request: Request) -> Form | None:
    """The form of a request; None where there is none, or it was not opened here."""
    if not hasattr(request.state, "form"):
        with suppress(TaskerError):
            form = await form_of(request)
            require_same_site(request, form)
            request.state.form = form
    stored_form: Form | None = getattr(request.state, "form", None)
    return stored_form


def fields_of(form: Form) -> Sequence[SentField]:
    """Its fields, but for the token that each page puts into its own forms."""
    secrets = form.texts("secret")
    return [
        SentField(name, value.replace("\r\n", "\n"), _label(name), name.removeprefix(INPUT) in secrets)
        for name, values in form.fields.items()
        if name != FIELD
        for value in values
    ]


def _label(name: str) -> str | None:
    return f"Input {name.removeprefix(INPUT)}".strip() if name.startswith(INPUT) else LABELS.get(name)


class UnavailablePage(Response):
    """Page of a server that cannot answer: with the form of the request, if it was opened here and came whole."""

    def __init__(self, problem: Mapping[str, Any], retry: str | None) -> None:
        super().__init__(status_code=int(str(problem["status"])))
        self._problem, self._retry = problem, retry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        form = None
        if scope["method"] == "POST" and self._problem["code"] == NOT_READY:
            form = await own_form(Request(scope, receive))
        query = scope["query_string"].decode("latin-1")
        values = {
            "problem": self._problem,
            "address": f"{scope['path']}?{query}" if query else scope["path"],
            "retry": self._retry if scope["method"] == "GET" else None,
            "again": fields_of(form) if form else (),
            "token_field": FIELD,
            "token": form.text(FIELD) if form else "",
        }
        text = environment().get_template("unavailable.html").render(style=STYLE, **values)
        headers = {"Content-Security-Policy": POLICY, **({"Retry-After": self._retry} if self._retry else {})}
        await HTMLResponse(text, self.status_code, headers)(scope, receive, send)


def answer_below(root_path: str) -> Answering:
    """Return what answers with a page below `/ui` where the application cannot, and as the API does elsewhere."""
    root = f"{root_path}{ROOT}"

    def made(problem: Mapping[str, Any], scope: Scope) -> Response:
        response, path = answer(problem, scope), scope["path"]
        if path != root and not path.startswith(f"{root}/"):
            return response
        return UnavailablePage(problem, response.headers.get("retry-after"))

    return made
