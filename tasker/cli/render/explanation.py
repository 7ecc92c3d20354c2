"""Text output of `tasker task explain`: one paragraph for each reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tasker.cli.render.values import COLOURS, date_time, wrapped
from tasker.services.folding import folded_names

if TYPE_CHECKING:
    from tasker.services.explain.explanation import Explained, Explanation

MARKS = {True: ("!", "yellow"), False: ("·", "cyan")}


def explanation_text(found: Explanation, width: int | None, database: str = "") -> str:
    """Render the task's status, and for each reason its steps, the explanation and the remedy."""
    status = click.style(found.status, fg=COLOURS.get(found.status), bold=True)
    lines = [f"{found.namespace}/{found.template}  {found.task_uuid}", f"{status}, as of {date_time(found.at)}"]
    for each in found.reasons:
        lines += ["", *_paragraph(each, width, database)]
    if found.more:
        lines += ["", f"and {found.more} more reasons; --step NAME shows the reasons for one step"]
    if not found.reasons:
        lines += ["", "no steps left to run"]
    return "\n".join(lines)


def _paragraph(each: Explained, width: int | None, database: str) -> Iterator[str]:
    mark, colour = MARKS[each.needs_somebody]
    names = folded_names(each.steps) if each.steps else ["the task itself"]
    more = f" and {each.count - len(each.steps):,} more" if each.count > len(each.steps) else ""
    yield click.style(f"{mark} {', '.join(names)}{more}", fg=colour, bold=True)
    yield wrapped(each.sentence(), 2, width)
    yield click.style(_remedy(each.remedy(database), width), dim=True)


def _remedy(text: str, width: int | None) -> str:
    """Render the remedy; a command at its end gets its own line, so that it can be copied."""
    words, found, command = text.partition(": tasker ")
    if not found:
        return wrapped(f"→ {text}", 2, width)
    return f"{wrapped(f'→ {words}:', 2, width)}\n    tasker {command}"
