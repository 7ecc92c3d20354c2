"""All pages, and what is true of each of them: where they are, and which a caller finds in the navigation."""

from __future__ import annotations

from fastapi import FastAPI

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.rules.permissions import Permission
from tasker.services.authentication.caller import AuthenticatedCaller


@dataclass(frozen=True, slots=True)
class Section:
    """A page of the navigation; `keys` lead there: `g`, then this letter."""

    path: str
    title: str
    key: str
    permission: Permission


SECTIONS = (
    Section("", "Overview", "o", Permission.SYSTEM_ANALYTICS_READ),
    Section("tasks", "Tasks", "t", Permission.TASKS_LIST),
    Section("dead-letters", "Dead letters", "d", Permission.DLQ_READ),
    Section("templates", "Templates", "e", Permission.TEMPLATES_READ),
    Section("fleet", "Fleet", "f", Permission.SYSTEM_ANALYTICS_READ),
    Section("events", "Events", "v", Permission.TASKS_LIST),
    Section("settings", "Settings", "s", Permission.SYSTEM_CONFIG_READ),
)


def sections_of(caller: AuthenticatedCaller) -> list[Section]:
    """Those that a caller may see."""
    return [each for each in SECTIONS if caller.may(each.permission)]


def add_pages(app: FastAPI) -> None:
    """Add every page to the application."""
    from tasker.web.routes import SUBJECTS

    for subject in SUBJECTS:  # as the application does with its own
        app.router.routes.extend(subject.routes.routes)
