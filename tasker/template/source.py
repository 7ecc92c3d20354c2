"""Text to YAML documents: syntax problems become diagnostics with their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from yaml.error import MarkedYAMLError, YAMLError
from yaml.nodes import Node as YamlNode
from yaml.reader import ReaderError

from tasker.template.convert import QUOTE_BRACES, UNQUOTED_BRACES, Converter
from tasker.template.diagnostics import Place, Report
from tasker.template.nodes import Node
from tasker.template.yaml_loader import Loader, TooDeep

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
BRACES = re.compile(r"(?:^|[:,\[]\s|-\s)\s*(\{\{)")
SYNTAX_HINTS = {
    "mapping values are not allowed here": "quote a value that contains `: `, or check the indentation",
    "could not find expected ':'": "write `key: value`",
    "found unexpected end of stream": "a quote or bracket is opened and never closed",
}


class Document(NamedTuple):
    """One document, and how many errors the report held before this document was read."""

    errors_before: int
    node: Node


def read_documents(text: str, report: Report) -> Iterator[Document]:
    """The documents of the text that are mappings, each converted when it is asked for; the rest is reported."""
    roots = [root for root in _compose(text, report) if not _is_empty(root)]
    if not roots and not report.errors:
        report.add("T010", "the file holds no template", Place(1, 1), "a template starts with `name:`")
    for root in roots:
        document = Document(report.errors, Converter(report).convert(root))
        if _is_mapping(document.node, report):
            yield document


def _compose(text: str, report: Report) -> list[YamlNode]:
    """Every document up to the first syntax error, behind which nothing can be read."""
    roots: list[YamlNode] = []
    loader: Loader | None = None
    try:
        loader = Loader(text)
        while loader.check_node():
            root = loader.get_node()
            if root is not None:
                roots.append(root)
    except YAMLError as error:
        _report_syntax(error, text, report)
    except (ValueError, OverflowError) as error:  # an escape such as "\UFFFFFFFF"
        mark = loader.get_mark() if loader else None
        place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        report.add("T001", f"not valid YAML: {error}", place)
    return roots


def _report_syntax(error: YAMLError, text: str, report: Report) -> None:
    if isinstance(error, ReaderError):
        character = f"U+{ord(error.character):04X}" if isinstance(error.character, str) else f"U+{error.character:04X}"
        report.add("T001", f"not valid YAML: the character {character} is not allowed", _place_of(error.position, text))
    elif isinstance(error, MarkedYAMLError):
        _report_marked(error, text, report)
    else:
        report.add("T001", f"not valid YAML: {error}", Place(1, 1))


def _report_marked(error: MarkedYAMLError, text: str, report: Report) -> None:
    mark = error.problem_mark or error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
    problem = error.problem or "syntax error"
    braces = BRACES.search(line_of(text, place.line))
    if isinstance(error, TooDeep):
        report.add("T007", problem, place)
    elif braces:
        report.add("T004", UNQUOTED_BRACES, Place(place.line, braces.start(1) + 1, 2), QUOTE_BRACES)
    elif "'\\t'" in problem:
        report.add("T002", "a tab where YAML allows only spaces", place, "indent and separate with spaces")
    else:
        report.add("T001", f"not valid YAML: {problem}", place, _syntax_hint(error))


def _syntax_hint(error: MarkedYAMLError) -> str | None:
    if error.problem in SYNTAX_HINTS:
        return SYNTAX_HINTS[error.problem]
    if error.context and error.context_mark:
        return f"found {error.context} that starts in line {error.context_mark.line + 1}"
    return None


def line_of(text: str, number: int) -> str:
    """The line with that number, counted from 1 as YAML counts; empty behind the end."""
    lines = LINE_BREAK.split(text)
    return lines[number - 1] if number <= len(lines) else ""


def _place_of(position: int, text: str) -> Place:
    before = LINE_BREAK.split(text[:position])
    return Place(len(before), len(before[-1]) + 1)


def _is_empty(root: YamlNode) -> bool:
    return root.tag == "plain" and root.value == ""


def _is_mapping(node: Node, report: Report) -> bool:
    if isinstance(node.value, dict):
        return True
    if not node.broken:
        report.add("T011", "a template is a mapping of keys to values", node.place, "a template starts with `name:`")
    return False
