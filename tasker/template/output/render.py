"""Diagnostics as text, `file:line:col` first with an excerpt below, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tasker.template.diagnostics import Diagnostic
from tasker.template.yaml.lines import line_of


def render_text(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> str:
    """Return one paragraph per diagnostic. `sources` maps file names to texts; without a text there is no excerpt."""
    return "\n\n".join(_paragraph(diagnostic, sources.get(diagnostic.file)) for diagnostic in diagnostics)


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Return a JSON array of objects with the fields of `Diagnostic`."""
    return json.dumps([diagnostic.to_dict() for diagnostic in diagnostics], indent=2, ensure_ascii=False)


def _paragraph(diagnostic: Diagnostic, source: str | None) -> str:
    d = diagnostic
    lines = [f"{d.file}:{d.line}:{d.column}: {d.severity}[{d.code}]: {d.message}"]
    if source is not None:
        lines += _excerpt(d, source)
    if d.hint:
        lines.append(f"  = hint: {d.hint}")
    return "\n".join(lines)


def _excerpt(diagnostic: Diagnostic, source: str) -> list[str]:
    text = line_of(source, diagnostic.line).replace("\t", " ")
    number = str(diagnostic.line)
    length = max(1, min(diagnostic.length, len(text) - diagnostic.column + 1))
    margin = " " * len(number)
    return [
        f"  {margin} |",
        f"  {number} | {text}".rstrip(),
        f"  {margin} | {' ' * (diagnostic.column - 1)}{'^' * length}",
    ]
