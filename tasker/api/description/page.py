"""HTML page of the API description, without scripts and external resources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]
QUOTED = re.compile(r"`([^`]+)`")
OF_ANY_REQUEST = ("400", "401", "403", "429", "500", "503")
"""Answers common to all operations, listed once."""


@cache
def style() -> str:
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def page(described: Schema, root: str) -> str:
    """Return the HTML page of an OpenAPI description; `root` is the path under which the API is served."""
    groups: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            shown = _operation(method, path, operation, described["components"]["schemas"])
            groups.setdefault(operation["tags"][0], []).append(shown)
    links = " ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in groups)
    sections = "".join(f'<h2 id="{escape(name)}">{escape(name)}</h2>{"".join(shown)}' for name, shown in groups.items())
    info = described["info"]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}</title><style>{style()}</style>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{_text(info.get('description', ''))}</p>"
        f'<p>For tools: <a href="{escape(root)}/openapi.json">openapi.json</a></p><nav>{links}</nav>{sections}'
        f"<h2>Any of them</h2>{_table(_general(described))}</html>"
    )


def _operation(method: str, path: str, operation: Schema, schemas: Schema) -> str:
    words = operation.get("description", "")
    parameters = operation.get("parameters", ())
    inputs = [(each["name"], _type(each["schema"]), each.get("description", "")) for each in parameters]
    name = _type(_content(operation.get("requestBody", {})))
    return (
        f'<details><summary><b class="{method}">{method.upper()}</b><code>{escape(path)}</code>'
        f"<span>{_text(_brief(words))}</span></summary><div>"
        f"{''.join(f'<p>{_text(each)}</p>' for each in words.split(chr(10) * 2))}"
        f"{_part('Parameters', inputs)}{_part('Body', _fields(name, schemas))}"
        f"{_part('Answers', _answers(operation['responses'], schemas))}</div></details>"
    )


def _brief(words: str) -> str:
    return words.partition("\n")[0].partition(". ")[0].removesuffix(".")


def _answers(responses: Schema, schemas: Schema) -> Iterable[tuple[str, str, str]]:
    for status, answer in responses.items():
        if status in OF_ANY_REQUEST:
            continue
        kind = _type(_content(answer))
        fields = ", ".join(f"`{name}`" for name, _, _ in _fields(kind.removeprefix("list of "), schemas))
        told = answer["description"] if answer["description"] != "Successful Response" else ""
        yield status, kind, f"{told} {fields if status < '300' else ''}".strip()


def _general(described: Schema) -> Iterable[tuple[str, str, str]]:
    found = {
        status: answer["description"]
        for operations in described["paths"].values()
        for operation in operations.values()
        for status, answer in operation["responses"].items()
        if status in OF_ANY_REQUEST
    }
    return [(status, "Problem", words) for status, words in sorted(found.items())]


def _fields(name: str, schemas: Schema) -> list[tuple[str, str, str]]:
    schema = schemas.get(name, {})
    needed = schema.get("required", ())
    return [
        (field, f"{_type(each)}{', required' if field in needed else ''}", each.get("description", ""))
        for field, each in schema.get("properties", {}).items()
    ]


def _content(holder: Schema) -> Schema:
    return next((each.get("schema", {}) for each in holder.get("content", {}).values()), {})


def _type(schema: Schema) -> str:
    """Return the type of a value in a few words; empty if the schema gives none."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'values'}"
    return " ".join(str(schema[key]) for key in ("type", "format") if key in schema)


def _part(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    table = _table(rows)
    return f"<h3>{escape(title)}</h3>{table}" if table else ""


def _table(rows: Iterable[tuple[str, str, str]]) -> str:
    lines = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(kind)}<td>{_text(words)}</tr>" for name, kind, words in rows
    )
    return f"<table>{lines}</table>" if lines else ""


def _text(words: str) -> str:
    return QUOTED.sub(r"<code>\1</code>", escape(words))
