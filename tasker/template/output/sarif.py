"""Diagnostics in SARIF 2.1.0, which code hosts and editors display beside the lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tasker.template.codes import CODES
from tasker.template.diagnostics import Diagnostic

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """Return a SARIF log with one run; its rules are the codes that occur."""
    found = list(diagnostics)
    codes = sorted({d.code for d in found})
    rules = [{"id": code, "shortDescription": {"text": _meaning(code)}} for code in codes]
    run = {"tool": {"driver": {"name": "tasker", "rules": rules}}, "results": [_result(d, codes) for d in found]}
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
