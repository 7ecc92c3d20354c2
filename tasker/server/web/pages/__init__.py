"""Pages of the web UI, one module per subject."""

from tasker.server.web.pages import (
    approvals,
    bulk,
    dead_letters,
    events,
    fleet,
    overview,
    schedules,
    settings,
    sign_in,
    static_files,
    submit,
    task,
    task_actions,
    tasks,
    templates,
    unknown,
)

SUBJECTS = (
    overview,
    tasks,
    bulk,
    task,
    task_actions,
    approvals,
    dead_letters,
    templates,
    submit,
    schedules,
    fleet,
    events,
    settings,
    sign_in,
    static_files,
    unknown,
)
"""Modules with `routes`. The last one answers unknown addresses."""
