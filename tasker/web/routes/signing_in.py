"""Signing in with an API key or a token, and out again."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from tasker.api.problems import problem_of, tell
from tasker.api.rate_limit import RateLimit
from tasker.errors import NotAuthenticated, UsageError
from tasker.services.authentication.caller import Caller
from tasker.web.rendering import leads_to, page, url
from tasker.web.route import page_router, sent
from tasker.web.signing_in import checked_credential, sign_in, sign_out, with_credential

routes = page_router()


@routes.get("/sign-in")
async def show_form(request: Request) -> Response:
    """The form; where nobody is asked who they are it leads to the overview."""
    try:
        await _caller(request, None)
    except NotAuthenticated:
        return page(request, "sign_in.html", next=request.query_params.get("next", ""), problem=None)
    return leads_to(request)


@routes.post("/sign-in")
async def take_credential(request: Request) -> Response:
    """Whoever shows a credential that is known goes where they wanted to."""
    form = sent(request)
    wanted = form.text("next")
    try:
        credential = checked_credential(form.text("credential"))
        await _caller(request, credential)
    except (NotAuthenticated, UsageError) as error:
        tell(error, request.scope)
        status = 401 if isinstance(error, NotAuthenticated) else 400
        return page(request, "sign_in.html", status, next=wanted, problem=problem_of(error))
    answer = RedirectResponse(f"{url(request)}/{wanted.lstrip('/')}".rstrip("/"), 303)
    sign_in(request, answer, credential)
    return answer


@routes.post("/sign-out")
async def forget_credential(request: Request) -> Response:
    """The browser forgets who signed in."""
    answer = leads_to(request, "sign-in")
    sign_out(request, answer)
    return answer


async def _caller(request: Request, credential: str | None) -> Caller:
    """Who shows this, or what the browser keeps. Raises `NotAuthenticated`, `TooManyRequests` for guessing."""
    limit: RateLimit | None = request.app.state.rate_limit
    if limit and credential:
        limit.spend(f"address {request.client.host if request.client else 'unknown'}")
    caller: Caller = await request.app.state.gate(with_credential(request, credential))
    return caller
