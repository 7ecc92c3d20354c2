"""Pages that say what went wrong, with the way to try again; a form of which nothing came is shown as it was sent."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from fastapi import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from tasker.api.problems import Answering, answer
from tasker.contracts.dataclasses import dataclass
from tasker.errors import TaskerError
from tasker.web.forgery import FIELD, require_same_site
from tasker.web.forms import Form, form_of
from tasker.web.rendering import ROOT, environment, page

NOT_SENT_AGAIN = (401, 403, 404, 405)
"""Statuses after which sending the form again changes nothing."""
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
    """The page that tells of a problem; with a form to send `again`."""
    request.scope["state"]["problem"] = problem["code"]
    status = int(str(problem["status"]))
    found = page(request, "failed.html", status, problem=problem, again=fields_of(again) if again else ())
    if seconds := problem["error"].get("retry_after_seconds"):
        found.headers["Retry-After"] = str(seconds)
    return found


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
    found: Form | None = getattr(request.state, "form", None)
    return found


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


def answer_below(root_path: str) -> Answering:
    """Return what answers with a page below `/ui` where the application cannot, and as the API does elsewhere."""
    root = f"{root_path}{ROOT}"

    def made(problem: Mapping[str, Any], scope: Scope) -> Response:
        found, path = answer(problem, scope), scope["path"]
        if path != root and not path.startswith(f"{root}/"):
            return found
        query = scope["query_string"].decode("latin-1")
        address = f"{path}?{query}" if query else path
        retry = found.headers.get("retry-after")
        values = {"problem": problem, "address": address, "retry": retry if scope["method"] == "GET" else None}
        text = environment().get_template("unavailable.html").render(style=STYLE, **values)
        headers = {"Content-Security-Policy": POLICY, **({"Retry-After": retry} if retry else {})}
        return HTMLResponse(text, found.status_code, headers)

    return made
