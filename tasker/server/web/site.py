"""Addresses of pages, navigation and assets."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

from fastapi import FastAPI

from tasker.dataclasses import dataclass
from tasker.operations.permissions import Permission
from tasker.server.auth.caller import AuthenticatedCaller
from tasker.version import __version__


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
    Section("approvals", "Approvals", "a", Permission.APPROVALS_DECIDE),
    Section("dead-letters", "Dead letters", "d", Permission.DLQ_READ),
    Section("templates", "Templates", "e", Permission.TEMPLATES_READ),
    Section("schedules", "Schedules", "c", Permission.SCHEDULES_READ),
    Section("fleet", "Fleet", "f", Permission.SYSTEM_ANALYTICS_READ),
    Section("events", "Events", "v", Permission.TASKS_LIST),
    Section("settings", "Settings", "s", Permission.SYSTEM_CONFIG_READ),
)


OF_TENANTS = ("tasks", "approvals")
"""Pages for callers who are limited to tenants."""


def sections_of(caller: AuthenticatedCaller) -> list[Section]:
    """Return the sections that the caller may see; limited to tenants, they see tasks and approvals."""
    limited = caller.tenants is not None
    return [each for each in SECTIONS if caller.may(each.permission) and (each.path in OF_TENANTS or not limited)]


def add_pages(app: FastAPI) -> None:
    from tasker.server.web.pages import SUBJECTS

    for subject in SUBJECTS:  # like the routes of the application itself
        app.router.routes.extend(subject.routes.routes)


FOLDER = Path(__file__).parent / "static"


@cache
def revision() -> str:
    """Return a digest that changes with any file, so that browsers may cache the files forever."""
    digest = blake2b(__version__.encode(), digest_size=6)
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
