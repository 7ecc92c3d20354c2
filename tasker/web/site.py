"""Pages of the web UI and its navigation."""

from __future__ import annotations

from fastapi import FastAPI

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.rules.permissions import Permission
from tasker.services.authentication.caller import AuthenticatedCaller


@dataclass(frozen=True, slots=True)
class Section:
    """Page of the navigation; the keys `g` and then `key` open it."""

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
    return [each for each in SECTIONS if caller.may(each.permission)]


def add_pages(app: FastAPI) -> None:
    from tasker.web.routes import SUBJECTS

    for subject in SUBJECTS:  # like the routes of the application itself
        app.router.routes.extend(subject.routes.routes)
