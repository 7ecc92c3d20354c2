"""Text to YAML documents; syntax errors say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from yaml.error import Mark, MarkedYAMLError, YAMLError
from yaml.nodes import Node as YamlNode
from yaml.reader import ReaderError

from tasker.template.diagnostics import Position, Report
from tasker.template.yaml.convert import QUOTE_BRACES, UNQUOTED_BRACES, Converter
from tasker.template.yaml.nodes import PLAIN, Loader, Node, TooDeep, compose_quickly, line_of, location_of_offset
from tasker.template.yaml.recovery import Recovery

BRACES = re.compile(r"(?:^|[:,\[]\s|-\s)\s*(\{\{.*?)\s*(?:\s#.*)?$")
EXPRESSION = re.compile(r"(?:^|[:,\[{]\s*|-\s)\s*(\$\{.*?)\s*(?:\s#.*)?$")
"""Expression that begins an unquoted value."""
CONDITION = re.compile(r"(?:^|[{,\s-])(?:when|in|for_each):\s+(?![\[{|>&*])(.+?)(?:,\s*\w+:\s.*|\s*\}\s*\]?|\s+#.*)?$")
"""Unquoted condition or list, up to the next key of its rule."""
COLLECTION = re.compile(
    r"^[\s-]*(?:when|in|for_each):\s+(?!\{\s*in:)([\[{].*?[\]}]\s*(?:[.?<>+\[]|[!=]=|in\b).*?)\s*(?:\s#.*)?$"
)
"""Unquoted condition or list that begins with a list or a map, such as `["a", "b"].map(...)`."""
EXPRESSION_PART = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{}]")
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
        report.add("T001", message, location_of_offset(error.position, recovery.text))
        return False
    mark = error.problem_mark or error.context_mark if isinstance(error, MarkedYAMLError) else None
    if not isinstance(error, MarkedYAMLError) or mark is None:
        report.add("T001", f"not valid YAML: {error}", Position(1, 1))
        return False
    return _report_marked(error, mark, recovery, report)


def _report_marked(error: MarkedYAMLError, mark: Mark, recovery: Recovery, report: Report) -> bool:
    location = Position(mark.line + 1, mark.column + 1)
    problem = error.problem or "syntax error"
    braces = BRACES.search(line_of(recovery.text, location.line))
    if braces:
        return _report_braces(braces, mark, recovery, report)
    line = line_of(recovery.text, location.line)
    if expression := EXPRESSION.search(line):
        return _report_expression(expression, line, mark, recovery, report)
    if (condition := CONDITION.search(line)) and not _is_quoted(condition[1]):
        return _report_expression(condition, line, mark, recovery, report)
    if collection := COLLECTION.search(line):
        return _report_expression(collection, line, mark, recovery, report)
    if "'\\t'" in problem:
        report.add("T002", "a tab where YAML allows only spaces", location, "indent and separate with spaces")
        return recovery.remove_tab(location, mark.index)
    if isinstance(error, TooDeep):
        report.add("T007", problem, location)
        return False
    if recovery.reliable and location.line not in recovery.lines:
        report.add("T001", f"not valid YAML: {problem}", location, _hint(error))
    return problem == COLON_IN_VALUE and recovery.remove_colon(location, mark.index)


def _report_expression(expression: re.Match[str], line: str, mark: Mark, recovery: Recovery, report: Report) -> bool:
    """Report an expression that YAML reads as something else; the hint is the line with quotes."""
    column, text = expression.start(1), expression.group(1)
    end = _closing_brace(text) if text.startswith("${") else None
    if end is not None and (line.lstrip(" -").startswith(("{", "[")) or re.match(r"\s*[^\s:]+:\s+[{\[]", line)):
        text = text[: end + 1]  # inside a collection in one line, the value ends with the expression
    quoted = '"' + text + '"' if '"' not in text else "'" + text.replace("'", "''") + "'"
    fixed = line[:column] + quoted + line[column + len(text) :]
    message = "an expression that is not in quotes, and that YAML reads otherwise"
    report.add("T090", message, Position(mark.line + 1, column + 1, 2), f"write {fixed.strip()}")
    whole = Position(mark.line + 1, column + 1, len(text))
    return recovery.remove_braces(whole, mark.index - mark.column + column)


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] and text[0] not in text[1:-1]


def _closing_brace(text: str) -> int | None:
    """Return the offset of the brace that closes the one of `${`."""
    depth = 0
    for match in EXPRESSION_PART.finditer(text):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] == "}":
            return match.start()
    return None


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


ALWAYS_BROKEN = -1


class Document(NamedTuple):
    """Document, with the number of errors in the report before it was read."""

    errors_before: int
    node: Node


def read_documents(text: str, report: Report) -> Iterator[Document]:
    """Yield the documents of the text that are mappings, converted lazily; all other documents are reported."""
    recovery = Recovery(text)
    roots = [root for root in _compose(recovery, report) if not _is_empty(root)]
    if not roots and not report.errors:
        report.add("T010", "the file holds no template", Position(1, 1), "a template starts with `name:`")
    for root in roots:
        if not _is_repaired(root, recovery):
            yield from _document(root, report.errors, recovery, report)
        elif recovery.reliable:
            yield from _document(root, ALWAYS_BROKEN, recovery, report)


def _document(root: YamlNode, errors_before: int, recovery: Recovery, report: Report) -> Iterator[Document]:
    document = Document(errors_before, Converter(report, recovery.placeholders).convert(root))
    if _is_mapping(document.node, report):
        yield document


def _compose(recovery: Recovery, report: Report) -> list[YamlNode]:
    """Compose every document up to the first syntax error that cannot be repaired."""
    roots, error = _compose_once(recovery.text, report)
    while error is not None and report_syntax(error, recovery, report):
        roots, error = _compose_once(recovery.text, report)
    return roots


def _compose_once(text: str, report: Report) -> tuple[list[YamlNode], YAMLError | None]:
    if (composed := compose_quickly(text)) is not None:
        return composed, None
    roots: list[YamlNode] = []
    loader: Loader | None = None
    try:
        loader = Loader(text)
        while loader.check_node():
            root = loader.get_node()
            roots += [root] if root is not None else []
    except YAMLError as error:
        return roots, error
    except (ValueError, OverflowError) as error:  # an escape such as "\UFFFFFFFF"
        mark = loader.get_mark() if loader else None
        report.add(
            "T001", f"not valid YAML: {error}", Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        )
    return roots, None


def _is_repaired(root: YamlNode, recovery: Recovery) -> bool:
    return any(root.start_mark.line < line <= root.end_mark.line + 1 for line in recovery.lines)


def _is_empty(root: YamlNode) -> bool:
    return root.tag == PLAIN and root.value == ""


def _is_mapping(node: Node, report: Report) -> bool:
    if isinstance(node.value, dict):
        return True
    if not node.broken:
        report.add("T011", "a template is a mapping of keys to values", node.location, "a template starts with `name:`")
    return False
