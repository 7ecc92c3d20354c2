"""A template that no test registers otherwise, and the token of its plan."""

from __future__ import annotations

from hashlib import md5

from tasker.services.workflows.deployments import made_token

REFUND = "name: refund\nnamespace: shop\nversion: 1.0.0\nsteps:\n  - name: pay\n    handler: shop.pay\n"


def token_of_refund() -> str:
    """Token of a plan for it, made while no version of it was registered."""
    return made_token(REFUND, None, force=False, state=md5(b"").hexdigest())
