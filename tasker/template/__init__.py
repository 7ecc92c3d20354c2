"""Compiler of YAML templates to plans or diagnostics. Names are imported lazily, since workers need few of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasker.template.compile import CompileResult, compile_text
    from tasker.template.diagnostics import Diagnostic
    from tasker.template.report import render_text, to_json, to_sarif
    from tasker.template.schema_check import SchemaMismatch, check_input, check_result

_PLACES = {
    "CompileResult": "compile",
    "Diagnostic": "diagnostics",
    "SchemaMismatch": "schema_check",
    "check_input": "schema_check",
    "check_result": "schema_check",
    "compile_text": "compile",
    "render_text": "report",
    "to_json": "report",
    "to_sarif": "report",
}

__all__ = [
    "CompileResult",
    "Diagnostic",
    "SchemaMismatch",
    "check_input",
    "check_result",
    "compile_text",
    "render_text",
    "to_json",
    "to_sarif",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'tasker.template' has no attribute {name!r}")
    return getattr(import_module(f"tasker.template.{_PLACES[name]}"), name)
