"""Registration across services. A handler that gives up for good undoes what the steps before it have done."""

from __future__ import annotations

from typing import Any

from tasker.errors import BusinessLogicError, ServiceUnavailableError
from tasker.step_handler import depends_on, inputs, step_handler
from tasker.types import StepContext

Result = dict[str, Any]


@step_handler("user_onboarding.create_auth_account")
@inputs("user_id", "email")
async def create_auth_account(user_id: str, email: str) -> Result:
    return {"account_id": f"auth-{user_id}", "login": email}


@step_handler("user_onboarding.create_user_profile")
@depends_on(account="create_auth_account")
@inputs("user_id", "email", "simulate")
async def create_user_profile(
    account: Result, user_id: str, email: str, simulate: Result | None, context: StepContext
) -> Result:
    faults = simulate or {}
    if faults.get("duplicate_email"):
        raise BusinessLogicError(
            f"{email} belongs to another user",
            error_code="duplicate_email",
            metadata={"compensation": undo("delete_auth_account", account["account_id"], faults)},
        )
    if context.retry_count < faults.get("profile_unavailable", 0):
        raise ServiceUnavailableError("the profile service is down", error_code="service_unavailable")
    return {"profile_id": f"profile-{user_id}", "user_id": user_id}


@step_handler("user_onboarding.setup_notification_preferences")
@depends_on(profile="create_user_profile")
@inputs("marketing", "simulate")
def setup_notification_preferences(
    profile: Result, marketing: bool | None, simulate: Result | None, context: StepContext
) -> Result:
    faults = simulate or {}
    if faults.get("notifications_down"):
        last = context.is_last_retry()
        raise ServiceUnavailableError(
            "the notification service is down",
            error_code="service_unavailable",
            metadata={"compensation": undo("deactivate_user", profile["user_id"], faults)} if last else None,
        )
    channels = [*context.get_config("default_channels"), *(["newsletter"] if marketing else [])]
    return {"channels": channels}


@step_handler("user_onboarding.track_user_signup")
@depends_on(profile="create_user_profile")
def track_user_signup(profile: Result, context: StepContext) -> Result:
    """The correlation id follows the task through every service."""
    return {"event": "user.signed_up", "user_id": profile["user_id"], "traced": bool(context.correlation_id)}


@step_handler("user_onboarding.send_welcome_email")
@inputs("to", "subject", "links")
async def send_welcome_email(to: str, subject: str, links: list[str]) -> Result:
    """The template says what is sent, and from which step it comes."""
    return {"to": to, "subject": subject, "links": links}


def undo(action: str, subject: str, faults: Result) -> Result:
    """Best effort: a failed clean-up is reported for a person to finish, it never hides the first error."""
    if faults.get("cleanup_fails"):
        return {"action": action, "subject": subject, "compensated": False, "requires_manual_cleanup": True}
    return {"action": action, "subject": subject, "compensated": True}
