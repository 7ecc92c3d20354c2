"""Diagnostics as text, JSON and SARIF, and the JSON Schema for editors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tasker.template.diagnostics import CODES, Diagnostic
from tasker.template.model import TEMPLATE
from tasker.template.yaml.nodes import line_of


def template_schema() -> dict[str, Any]:
    """Return the schema of a template, in draft 2020-12. It cannot express the rules of the graph."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tasker workflow template",
        **TEMPLATE.json_schema(),
    }


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


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """Return a SARIF log with one run; its rules are the codes that occur."""
    entries = list(diagnostics)
    codes = sorted({d.code for d in entries})
    rules = [{"id": code, "shortDescription": {"text": _meaning(code)}} for code in codes]
    run = {"tool": {"driver": {"name": "tasker", "rules": rules}}, "results": [_result(d, codes) for d in entries]}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _meaning(code: str) -> str:
    return CODES.get(code) or f"A rule of the plugin {code.partition('.')[0]}"


def _result(diagnostic: Diagnostic, codes: list[str]) -> dict[str, Any]:
    d = diagnostic
    region = {"startLine": d.line, "startColumn": d.column, "endColumn": d.column + d.length}
    location = {"artifactLocation": {"uri": d.file.replace("\\", "/")}, "region": region}
    return {
        "ruleId": d.code,
        "ruleIndex": codes.index(d.code),
        "level": str(d.severity),
        "message": {"text": f"{d.message}\nHint: {d.hint}" if d.hint else d.message},
        "locations": [{"physicalLocation": location}],
    }
