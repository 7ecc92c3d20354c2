"""A route of a page: as one of the API, but its errors are pages, and who has not signed in is asked to."""

from __future__ import annotations

import logging
from contextlib import suppress

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tasker.api.envelope import FAILED
from tasker.api.permissions import REQUIRED
from tasker.api.problems import problem, problem_of, tell
from tasker.api.routes.route import GuardedRoute, Handler
from tasker.errors import NotAuthenticated, NotPermitted, TaskerError
from tasker.web.forgery import require_own
from tasker.web.forms import Form, form_of
from tasker.web.rendering import ROOT, caller_on, leads_to, page
from tasker.web.signing_in import with_session
from tasker.web.site import sections_of

_log = logging.getLogger("tasker.web")


class PageRoute(GuardedRoute):
    """Shows what goes wrong on a page."""

    done = 303
    """What is done leads to a page that tells so."""
    knows_parameters = False
    has_viewer = True
    """False where an answer is the same for everybody: nobody is asked then who looks."""

    def get_route_handler(self) -> Handler:
        """The function behind the gate."""
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
                if signed is not request:  # who shows nothing is asked to sign in, which is nothing to warn of
                    tell(error, request.scope)
                return leads_to(request, "sign-in", next=_place(request))
            except NotPermitted as error:
                tell(error, request.scope)
                return _elsewhere(signed) or failed(signed, problem_of(error))
            except TaskerError as error:
                tell(error, request.scope)
                return failed(signed, problem_of(error))
            except RequestValidationError as error:
                return failed(signed, malformed(error))
            except HTTPException as error:
                return failed(signed, problem(error.status_code, str(error.detail)))
            except Exception:
                _log.exception("request=%s %s failed", request.scope["state"]["request_id"], request.url.path)
                return failed(signed, problem(500, FAILED))

        return shown


async def _recognise(request: Request) -> None:
    """Who looks at a page that is open to everybody: the navigation is theirs there, too."""
    with suppress(NotAuthenticated):
        request.state.caller = await request.app.state.gate(request)


def _elsewhere(request: Request) -> Response | None:
    """From the first page to one that its caller may see; None: there is none, or they asked for another."""
    caller = caller_on(request)
    sections = [each for each in sections_of(caller) if each.path] if caller else []
    first = request.url.path.partition(ROOT)[2] in ("", "/") and request.method == "GET"
    return leads_to(request, sections[0].path) if first and sections else None


def failed(request: Request, found: dict[str, object]) -> Response:
    """The page that tells what went wrong; `found` is a problem."""
    request.scope["state"]["problem"] = found["code"]
    status = int(str(found["status"]))
    return page(request, "failed.html", status, problem=found)


def malformed(error: RequestValidationError) -> dict[str, object]:
    """The problem of an address whose parts are none of those expected."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return problem(400, f"{where}: {first['msg']}", hint="correct the address, or begin at the overview")


async def checked_form(request: Request) -> None:
    """Read the form of a request that changes something. Raises `NotPermitted` for one that was not opened here."""
    if request.method == "POST":
        form = await form_of(request)
        require_own(request, form)
        request.state.form = form


def sent(request: Request) -> Form:
    """The form of this request."""
    form: Form = request.state.form
    return form


def typed(request: Request, *names: str) -> dict[str, str]:
    """What the form of a refused action said, and which action it was: its page shows that form again."""
    form = sent(request)
    return {"action": request.url.path.rpartition("/")[2]} | {name: form.text(name) for name in names}


def _place(request: Request) -> str | None:
    """Where somebody wanted to go, to lead them there once they have signed in."""
    path = request.url.path.partition(ROOT)[2].strip("/")
    query = request.url.query
    return f"{path}?{query}" if query else path or None


def page_router(route_class: type[PageRoute] = PageRoute) -> APIRouter:
    """For the pages of one subject."""
    dependencies = [Depends(checked_form)]
    return APIRouter(prefix=ROOT, route_class=route_class, include_in_schema=False, dependencies=dependencies)
