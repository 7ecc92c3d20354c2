"""Route class of pages: like that of the API, but errors are pages, and callers without credentials are sent to sign
in."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tasker.errors import NotAuthenticated, NotPermitted, TaskerError
from tasker.server.application import Options
from tasker.server.auth.gate import REQUIRED
from tasker.server.envelope import is_out_of_time, path_of
from tasker.server.errors import FAILED, log_error, problem, problem_of
from tasker.server.routes import GuardedRoute, Handler
from tasker.server.web.error_pages import failed, form_again, own_form
from tasker.server.web.forms import Form, form_of, require_same_site
from tasker.server.web.rendering import ROOT, caller_on, redirect
from tasker.server.web.session import with_session
from tasker.server.web.site import sections_of

_log = logging.getLogger("tasker.web")


class PageRoute(GuardedRoute):
    """Route that shows errors as pages."""

    done = 303
    """Status of a successful action: a redirect to the page that confirms it."""
    knows_parameters = False
    has_viewer = True
    """False if the answer is the same for every caller: no sign-in is needed then."""

    def get_route_handler(self) -> Handler:
        """Return the route's function behind the gate."""
        handle = super().get_route_handler()
        is_open = REQUIRED not in (self.openapi_extra or {})

        async def shown(request: Request) -> Response:
            signed = request
            try:
                if self.has_viewer:
                    signed = await with_session(request)
                if self.has_viewer and is_open:
                    await _recognise(signed)
                return await handle(signed)
            except NotAuthenticated as error:
                if signed is not request:  # no warning if no credential was sent: the caller is asked to sign in
                    log_error(error, request.scope)
                return await _asked_to_sign_in(request)
            except NotPermitted as error:
                log_error(error, request.scope)
                return _elsewhere(signed) or failed(signed, problem_of(error))
            except TaskerError as error:
                log_error(error, request.scope)
                details = problem_of(error)
            except RequestValidationError as error:
                details = malformed(error)
            except HTTPException as error:
                details = problem(error.status_code, str(error.detail))
            except asyncio.CancelledError:
                if not is_out_of_time(request.scope):
                    raise
                return failed(signed, _late(request), getattr(request.state, "form", None))
            except Exception:
                _log.exception("request=%s %s failed", request.scope["state"]["request_id"], path_of(request.scope))
                details = problem(500, FAILED)
            return failed(signed, details, await form_again(signed, details["status"]))

        return shown


async def _recognise(request: Request) -> None:
    """Identify the caller of a page that is open to everyone, so that the navigation matches their permissions."""
    with suppress(NotAuthenticated):
        request.state.caller = await request.app.state.gate(request)


def _elsewhere(request: Request) -> Response | None:
    """Return a redirect from the overview to a page that the caller may see; None if there is none or the request was
    for another page."""
    caller = caller_on(request)
    sections = [section for section in sections_of(caller) if section.path] if caller else []
    first = request.url.path.partition(ROOT)[2] in ("", "/") and request.method == "GET"
    return redirect(request, sections[0].path) if first and sections else None


async def _asked_to_sign_in(request: Request) -> Response:
    """The form for signing in; to who sends one of our forms, that form again."""
    again = await own_form(request) if request.method == "POST" and "hx-request" not in request.headers else None
    if again is not None:
        return failed(request, problem(401, "you are no longer signed in"), again)
    return redirect(request, "sign-in", next=_next_page(request) if request.method == "GET" else None)


def _late(request: Request) -> dict[str, Any]:
    """The problem of a request that took too long."""
    options: Options = request.app.state.options
    message = f"the page was not ready within {options.limits.seconds:g} seconds"
    if request.method == "GET":
        return problem(504, message, kind="request_timeout", hint="try again, or choose fewer")
    message += "; it is unknown whether the change was made"
    return problem(504, message, kind="request_timeout", hint="check whether it was made before you send it again")


def malformed(error: RequestValidationError) -> dict[str, Any]:
    """The problem of an address whose parts are none of those expected."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return problem(400, f"{where}: {first['msg']}", hint="correct the address, or begin at the overview")


async def checked_form(request: Request) -> None:
    """Read the form of a request that changes something. Raises `NotPermitted` if it was not opened on this site."""
    if request.method == "POST":
        form = await form_of(request)
        require_same_site(request, form)
        request.state.form = form


def sent(request: Request) -> Form:
    """Return the form of this request."""
    form: Form = request.state.form
    return form


def typed(request: Request, *names: str) -> dict[str, str]:
    """Return the action and the values of its refused form, so that its page can show the form again."""
    form = sent(request)
    return {"action": request.url.path.rpartition("/")[2]} | {name: form.text(name) for name in names}


def _next_page(request: Request) -> str | None:
    """Return the page to open after sign-in."""
    path = request.url.path.partition(ROOT)[2].strip("/")
    query = request.url.query
    return f"{path}?{query}" if query else path or None


def page_router(route_class: type[PageRoute] = PageRoute) -> APIRouter:
    """For the pages of one subject."""
    dependencies = [Depends(checked_form)]
    return APIRouter(prefix=ROOT, route_class=route_class, include_in_schema=False, dependencies=dependencies)
