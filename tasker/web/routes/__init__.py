"""Pages of the web UI, one module per subject."""

from tasker.web.routes import (
    bulk,
    dead_letter,
    dead_letters,
    events,
    fleet,
    overview,
    replays,
    saved_views,
    settings,
    signing_in,
    static_files,
    submitting,
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
    saved_views,
    task,
    task_actions,
    dead_letters,
    dead_letter,
    replays,
    templates,
    submitting,
    fleet,
    events,
    settings,
    signing_in,
    static_files,
    unknown,
)
"""Modules with `routes`. The last one answers unknown addresses."""
