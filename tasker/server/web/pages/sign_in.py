"""Signing in with an API key or a token, and signing out."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from tasker.errors import TaskerError
from tasker.server.auth.caller import AuthenticatedCaller
from tasker.server.envelope import RateLimit
from tasker.server.errors import log_error, problem_of
from tasker.server.web.rendering import caller_on, page, redirect, url
from tasker.server.web.route import page_router, sent
from tasker.server.web.session import checked_credential, sign_in, sign_out, with_credential

routes = page_router()


@routes.get("/sign-in")
async def show_form(request: Request) -> Response:
    """Show the form, or the overview if authentication is disabled or the caller is signed in."""
    if caller_on(request) is None:
        return page(request, "sign_in.html", next=request.query_params.get("next", ""), problem=None)
    return redirect(request)


@routes.post("/sign-in")
async def take_credential(request: Request) -> Response:
    """Begin a session for a credential that is known, and lead to the page that was wanted."""
    form = sent(request)
    next_page = form.text("next")
    answer = RedirectResponse(f"{url(request)}/{next_page.lstrip('/')}".rstrip("/"), 303)
    try:
        credential = checked_credential(form.text("credential"))
        caller = await _caller(request, credential)
        if caller.known:
            await sign_in(request, answer, credential, caller)
    except TaskerError as error:
        log_error(error, request.scope)
        problem = problem_of(error)
        return page(request, "sign_in.html", problem["status"], next=next_page, problem=problem)
    return answer


@routes.post("/sign-out")
async def end_session(request: Request) -> Response:
    """End the session of this browser."""
    answer = redirect(request, "sign-in")
    await sign_out(request, answer)
    return answer


async def _caller(request: Request, credential: str) -> AuthenticatedCaller:
    """Return the caller of a credential. Raises `NotAuthenticated`, and `TooManyRequests` after too many tries."""
    limit: RateLimit | None = request.app.state.rate_limit
    if limit:
        limit.spend(f"address {request.client.host if request.client else 'unknown'}")
    caller: AuthenticatedCaller = await request.app.state.gate(with_credential(request, credential))
    return caller
