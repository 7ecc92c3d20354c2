"""Rendering of templates. All values are escaped, and pages load nothing from other sites (CSP)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from tasker.operations.permissions import Permission
from tasker.server.application import Options
from tasker.server.auth.caller import ANYBODY, AuthenticatedCaller
from tasker.server.web import flash, forms
from tasker.server.web.presenters.dead_letters import meaning
from tasker.server.web.presenters.overview import points
from tasker.server.web.presenters.task import group, label, may_resolve, shape
from tasker.server.web.presenters.text import (
    ago,
    clock,
    compact,
    is_nested,
    iso,
    lasted,
    moment,
    pretty,
    titled,
    utc,
    worded,
)
from tasker.server.web.site import revision, sections_of
from tasker.services.wording import counted, duration, number, one_line
from tasker.version import __version__

ROOT = "/ui"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FILTERS = {
    "ago": ago,
    "clock": clock,
    "compact": compact,
    "counted": counted,
    "duration": duration,
    "is_nested": is_nested,
    "iso": iso,
    "label": label,
    "lasted": lasted,
    "may_resolve": may_resolve,
    "meaning": meaning,
    "moment": moment,
    "number": number,
    "one_line": one_line,
    "pretty": pretty,
    "quote": shlex.quote,
    "shape": shape,
    "spark_points": points,
    "state_group": group,
    "titled": titled,
    "utc": utc,
    "worded": worded,
}


@cache
def environment() -> Environment:
    """Return the template environment. A name unknown to a template is an error, never an empty text."""
    folder = Path(__file__).parent / "templates"
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS, json_data=json_data)
    made.globals["version"] = __version__
    return made


def json_data(value: Any) -> Markup:
    """Return JSON for a `<script type="application/json">`, escaped so that it cannot close the element."""
    text = orjson.dumps(value, default=str).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def url(request: Request, path: str = "", **query: Any) -> str:
    """Return the link to a page, including the path of a proxy; empty query values are left out."""
    root = str(request.scope.get("root_path", ""))
    parameters = {name.rstrip("_"): value for name, value in query.items() if value not in (None, "", [], ())}
    query_string = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
    below = quote(path, safe="/:@!$&'()*+,;=~")  # names may contain any character
    return f"{root}{ROOT}{f'/{below}' if below else ''}{query_string}"


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return the page that a template renders from these values."""
    text = environment().get_template(template).render(_known(request), **values)
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}
    answer = HTMLResponse(text, status, headers)
    forms.set_token_cookie(request, answer)
    flash.forget(request, answer)
    return answer


def redirect(request: Request, path: str = "", message: str | None = None, **query: Any) -> RedirectResponse:
    """Return a redirect to another page after an action; the message is shown there once."""
    answer = RedirectResponse(url(request, path, **query), 303)
    if message:
        flash.say(request, answer, message)
    return answer


def caller_on(request: Request) -> AuthenticatedCaller | None:
    """Return the caller who views the page, or None before sign-in."""
    caller: AuthenticatedCaller | None = getattr(request.state, "caller", None)
    return caller


def _known(request: Request) -> Mapping[str, Any]:
    """Return the values available to every template."""
    caller = caller_on(request)
    options: Options = request.app.state.options

    def may(permission: str) -> bool:
        return caller is not None and caller.may(Permission(permission))

    def may_everywhere(permission: str) -> bool:
        return may(permission) and caller is not None and caller.namespaces(Permission(permission)) is None

    def link(path: str = "", **query: Any) -> str:
        return url(request, path, **query)

    return {
        "viewer": caller,
        "signs_in": caller is not None and caller != ANYBODY,
        "environment": options.environment,
        "form_token": forms.token_of(request),
        "here": _here(request),
        "may": may,
        "may_everywhere": may_everywhere,
        "message": flash.said(request),
        "path": request.url.path.removeprefix(str(request.scope.get("root_path", ""))).removeprefix(ROOT).strip("/"),
        "query": request.query_params,
        "request_id": request.scope["state"]["request_id"],
        "static": lambda name: link(f"static/{revision()}/{name}"),
        "sections": sections_of(caller) if caller else [],
        "url": link,
    }


def _here(request: Request) -> str:
    """Return the link to the current page with its query."""
    path, query = request.url.path, request.url.query
    root = str(request.scope.get("root_path", ""))
    if root and not path.startswith(root):
        path = root + path
    return f"{path}?{query}" if query else path
