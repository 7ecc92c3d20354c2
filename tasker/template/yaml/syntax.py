"""Actionable messages for PyYAML's syntax errors and, if possible, a repair so that reading can continue."""

from __future__ import annotations

import re

from yaml.error import Mark, MarkedYAMLError, YAMLError
from yaml.reader import ReaderError

from tasker.template.diagnostics import Position, Report
from tasker.template.yaml.convert import QUOTE_BRACES, UNQUOTED_BRACES
from tasker.template.yaml.lines import line_of, place_of_offset
from tasker.template.yaml.loader import TooDeep
from tasker.template.yaml.recovery import Recovery

BRACES = re.compile(r"(?:^|[:,\[]\s|-\s)\s*(\{\{.*?)\s*(?:\s#.*)?$")
COLON_IN_VALUE = "mapping values are not allowed here"
HINTS = {
    COLON_IN_VALUE: "quote a value that contains `: `, or check the indentation",
    "could not find expected ':'": "write `key: value`",
    "found unexpected end of stream": "a quote or bracket is opened and never closed",
}


def report_syntax(error: YAMLError, recovery: Recovery, report: Report) -> bool:
    """Report the error; return True if the text was repaired and can be read again."""
    if isinstance(error, ReaderError):
        code = ord(error.character) if isinstance(error.character, str) else error.character
        message = f"not valid YAML: the character U+{code:04X} is not allowed"
        report.add("T001", message, place_of_offset(error.position, recovery.text))
        return False
    mark = error.problem_mark or error.context_mark if isinstance(error, MarkedYAMLError) else None
    if not isinstance(error, MarkedYAMLError) or mark is None:
        report.add("T001", f"not valid YAML: {error}", Position(1, 1))
        return False
    return _report_marked(error, mark, recovery, report)


def _report_marked(error: MarkedYAMLError, mark: Mark, recovery: Recovery, report: Report) -> bool:
    place = Position(mark.line + 1, mark.column + 1)
    problem = error.problem or "syntax error"
    braces = BRACES.search(line_of(recovery.text, place.line))
    if braces:
        return _report_braces(braces, mark, recovery, report)
    if "'\\t'" in problem:
        report.add("T002", "a tab where YAML allows only spaces", place, "indent and separate with spaces")
        return recovery.remove_tab(place, mark.index)
    if isinstance(error, TooDeep):
        report.add("T007", problem, place)
        return False
    if recovery.reliable and place.line not in recovery.lines:
        report.add("T001", f"not valid YAML: {problem}", place, _hint(error))
    return problem == COLON_IN_VALUE and recovery.remove_colon(place, mark.index)


def _report_braces(braces: re.Match[str], mark: Mark, recovery: Recovery, report: Report) -> bool:
    column = braces.start(1)
    report.add("T004", UNQUOTED_BRACES, Position(mark.line + 1, column + 1, 2), QUOTE_BRACES)
    whole = Position(mark.line + 1, column + 1, len(braces.group(1)))
    return recovery.remove_braces(whole, mark.index - mark.column + column)


def _hint(error: MarkedYAMLError) -> str | None:
    if error.problem in HINTS:
        return HINTS[error.problem]
    if error.context and error.context_mark:
        return f"found {error.context} that starts in line {error.context_mark.line + 1}"
    return None
