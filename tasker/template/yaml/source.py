"""Reader of YAML documents that turns syntax problems into diagnostics with positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from yaml.error import YAMLError
from yaml.nodes import Node as YamlNode

from tasker.template.diagnostics import Position, Report
from tasker.template.yaml.convert import Converter
from tasker.template.yaml.loader import PLAIN, Loader, compose_quickly
from tasker.template.yaml.nodes import Node
from tasker.template.yaml.recovery import Recovery
from tasker.template.yaml.syntax import report_syntax

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
        report.add("T011", "a template is a mapping of keys to values", node.place, "a template starts with `name:`")
    return False
