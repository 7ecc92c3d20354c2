"""Deployments as text, and as annotations of GitHub."""

from __future__ import annotations

from collections.abc import Iterator

from tasker.cli.render.changes import TITLES
from tasker.cli.render.values import date_time
from tasker.services.wording import counted
from tasker.services.workflows.joined_texts import JoinedTexts
from tasker.template.diagnostics import listed
from tasker.template.diff import Level, Reader
from tasker.views.deployments import Deployment, OpenTasks, PlannedTemplate

TITLE_OF_ACTION = {
    "new": "new",
    "changed": "new version, compared with {compared_with}",
    "replaced": "replaced: the version is registered with other content",
    "refused": "REFUSED: the version is registered with other content; give it a new version, or use --force",
    "unchanged": "unchanged",
    "gone": "not in these files; it stays registered",
}


def deployment_text(deployment: Deployment, texts: JoinedTexts) -> str:
    """Return what a deployment would change, for people."""
    parts = ["\n".join(_template(template, texts)) for template in deployment.templates]
    if deployment.open_tasks:
        parts.append("\n".join(["open tasks", *_census(deployment)]))
    if deployment.unserved:
        parts.append("\n".join(["unserved", *_unserved(deployment)]))
    return "\n\n".join([*parts, _summary(deployment)])


def deployment_annotations(deployment: Deployment, texts: JoinedTexts) -> str:
    """Return the findings as workflow commands of GitHub, which shows them beside the lines of a change."""
    return "\n".join(_annotations(deployment, texts))


def _template(template: PlannedTemplate, texts: JoinedTexts) -> Iterator[str]:
    title = TITLE_OF_ACTION[template.action].format(compared_with=template.compared_with)
    yield f"{template.namespace}/{template.name}:{template.version}  {title}"
    for reader in Reader:
        changes = [change for change in template.changes if change.reader == reader and change.path]
        if changes:
            yield f"  {TITLES[reader]}"
        for change in changes:
            yield f"    {change.level}: {change.path}: {change.message}"
            if change.line is not None:
                yield "      {}:{}".format(*texts.place(change.line))
    if template.schedules:
        yield f"  schedules: {', '.join(template.schedules)}"
    if template.advised_version:
        yield f"  version: these changes ask for at least {template.advised_version}"


def _census(deployment: Deployment) -> Iterator[str]:
    for tasks in deployment.open_tasks:
        old = "" if tasks.current else " (older content)"
        count = f"{tasks.tasks} task{'s' if tasks.tasks != 1 else ''}"
        yield f"  {_name(tasks)}{old}  {count}, the oldest of {date_time(tasks.oldest)}"
        if tasks.steps:
            yield f"    still to run: {', '.join(f'{step.name} ({step.handler})' for step in tasks.steps)}"


def _name(tasks: OpenTasks) -> str:
    return f"{tasks.namespace}/{tasks.name}:{tasks.version}"


def _unserved(deployment: Deployment) -> Iterator[str]:
    for steps in deployment.unserved:
        of = "open tasks of " if steps.open_tasks else ""
        yield f"  {of}{steps.template}: {listed(steps.steps)}: {steps.reason}"


def _summary(deployment: Deployment) -> str:
    counts = {
        action: sum(template.action == action for template in deployment.templates)
        for action in ("new", "changed", "replaced", "refused", "unchanged")
    }
    breaking = sum(change.breaking for template in deployment.templates for change in template.changes)
    told = ", ".join(f"{count} {action}" for action, count in counts.items() if count)
    if not deployment.has_changes:
        return f"nothing to register: {told}"
    return f"to register: {told}" + (f"; {counted(breaking, 'breaking change')}" if breaking else "")


def _annotations(deployment: Deployment, texts: JoinedTexts) -> Iterator[str]:
    words = {Level.BREAKING: "error", Level.WARNING: "warning", Level.INFO: "notice"}
    for template in deployment.templates:
        name = f"{template.namespace}/{template.name}:{template.version}"
        if template.action == "refused":
            yield _annotation("error", template.line, f"{name}: {TITLE_OF_ACTION['refused']}", texts)
        for change in template.changes:
            yield _annotation(words[Level(change.level)], change.line, f"{name}: {change.message}", texts)
        if template.advised_version:
            message = f"{name}: these changes ask for at least {template.advised_version}"
            yield _annotation("warning", template.line, message, texts)
    for line in _unserved(deployment):
        yield _annotation("warning", None, line.strip(), texts)


def _annotation(word: str, line: int | None, message: str, texts: JoinedTexts) -> str:
    """Return one command; its values are escaped as GitHub asks for."""
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    if line is None:
        return f"::{word}::{escaped}"
    file, number = texts.place(line)
    for character, code in (("%", "%25"), (":", "%3A"), (",", "%2C")):
        file = file.replace(character, code)
    return f"::{word} file={file},line={number}::{escaped}"
