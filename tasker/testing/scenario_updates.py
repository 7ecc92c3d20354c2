"""Rewriting of what cases of scenario files expect, with comments and layout kept (`pytest --tasker-update`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tasker.errors import UsageError
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.scenarios import Case, sign_of_duration
from tasker.template.durations import duration_text


def actual_expectations(case: Case, run: SimulatedRun) -> dict[str, Any]:
    """Return the keys of the case's `expect` that the run does not meet, each with what it would meet."""
    return {
        key: _ACTUAL[key](run, wanted) for key, wanted in case.expect.items() if Case.differences(_only(case, key), run)
    }


def _only(case: Case, key: str) -> Case:
    return replace(case, expect={key: case.expect[key]})


def write_expectations(file: Path, updates: Mapping[str, Mapping[str, Any]]) -> None:
    """Write new values of `expect` into a scenario file, by the names of its cases. All other text stays as it is.

    Raises `UsageError` for a case whose `expect` is an alias or a merge.
    """
    with file.open(encoding="utf-8", newline="") as stream:
        text = stream.read()
    edits: list[tuple[int, int, str]] = []
    for case in _member(yaml.compose(text, Loader=yaml.SafeLoader), "cases")[1].value:
        name = _member(case, "name")[1].value
        for key, value in updates.get(name, {}).items():
            edits += _edits(*_member(_member(case, "expect")[1], key), value, text)
    for start, end, new in sorted(edits, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write(text)


def _member(node: Any, key: str) -> tuple[yaml.Node, yaml.Node]:
    for name, value in node.value:
        if name.value == key and value.start_mark.index >= name.end_mark.index:
            return name, value
    at = f"line {node.start_mark.line + 1}"
    raise UsageError(f"{key!r} cannot be written ({at}): it is an alias or merged", hint="change it by hand")


def _edits(key: yaml.Node, node: yaml.Node, value: Any, text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the parts of the text to replace, each with its new text."""
    if yaml.constructor.SafeConstructor().construct_document(node) == value:
        return
    names = {name.value for name, _ in node.value} if isinstance(node, yaml.MappingNode) else set()
    if isinstance(value, Mapping) and names and names == set(map(str, value)):
        for name, member in value.items():
            yield from _edits(*_member(node, str(name)), member, text)
        return
    colon = text.index(":", key.end_mark.index) + 1
    comment = text[colon : node.start_mark.index].strip()
    yield colon, _end(node), f" {_in_flow(value)}" + f"  {comment}" * bool(comment)


def _end(node: yaml.Node) -> int:
    """Return the end of a node without the comments and lines behind it, which a block has in its mark."""
    if isinstance(node, yaml.ScalarNode) or not node.value or getattr(node, "flow_style", False):
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _in_flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1e9)
    return text.strip().removesuffix("...").strip()


def _like(wanted: Any, found: Any) -> Any:
    """Return what was found, of an object only the keys that were expected."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return {key: _like(value, found[key]) for key, value in wanted.items() if key in found}
    return found


def _by_step(run: SimulatedRun, wanted: Mapping[str, Any], read: Any) -> dict[str, Any]:
    return {name: _like(value, read(name)) for name, value in wanted.items() if name in run.steps}


def _duration(run: SimulatedRun, wanted: Any) -> str:
    sign = {"<": "<=", ">": ">="}.get(found := sign_of_duration(wanted), found)
    return f"{sign} {duration_text(run.duration_ms / 1000)}".strip()


_ACTUAL: dict[str, Any] = {
    "status": lambda run, _: run.status,
    "outcome": lambda run, _: run.outcome,
    "route": lambda run, _: list(run.route),
    "attempts": lambda run, wanted: _by_step(run, wanted, lambda name: run.step(name).attempts),
    "inputs": lambda run, wanted: _by_step(run, wanted, run.inputs),
    "results": lambda run, wanted: _by_step(run, wanted, lambda name: run.step(name).result),
    "failures": lambda run, wanted: _by_step(run, wanted, lambda name: run.step(name).error_type),
    "duration": _duration,
}
