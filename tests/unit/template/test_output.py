"""Diagnostics as text, JSON and SARIF; the JSON Schema for editors."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tasker.template import CompileResult, compile_text, render_text, to_sarif
from tasker.template.diagnostics import CODES
from tasker.template.model import TEMPLATE
from tasker.template.report import template_schema
from tests.unit.template.support import DATA, step, top

BAD_FILES = sorted((DATA / "bad").glob("*.yaml"))


def compiled(file: Path) -> CompileResult:
    return compile_text(file.read_text(), file=file.name)


@pytest.mark.parametrize("file", BAD_FILES, ids=lambda file: file.stem)
def test_the_text_form_is_the_recorded_one(file: Path) -> None:
    result = compiled(file)
    assert render_text(result.diagnostics, result.sources) + "\n" == file.with_suffix(".txt").read_text()


def test_an_excerpt_is_left_out_without_the_source() -> None:
    (diagnostic,) = compile_text("").diagnostics
    text = render_text([diagnostic], {})
    assert text == ("<string>:1:1: error[T010]: the file holds no template\n  = hint: a template starts with `name:`")


def test_the_sarif_of_nothing_is_a_log_without_results() -> None:
    assert json.loads(to_sarif([]))["runs"][0]["results"] == []


def test_the_json_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(template_schema())


@pytest.mark.parametrize("file", sorted((DATA / "good").glob("*.yaml")), ids=lambda file: file.stem)
def test_the_json_schema_accepts_good_templates(file: Path) -> None:
    for document in yaml.load_all(file.read_text(), Loader=yaml.BaseLoader):
        errors = jsonschema.Draft202012Validator(template_schema()).iter_errors(retyped(document))
        assert [f"{e.json_path}: {e.message}" for e in errors] == []


@pytest.mark.parametrize(
    "text",
    [
        top("descripton: x"),
        step("type: decisio"),
        step("dependencies: b"),
        step("composition: {}"),
        step("retry: {max_attempts: -1}"),
        step("execution: {mode: fork}"),
        step("").replace("namespace_name: tests\n", ""),
        step("").replace("handler: h", ""),
        step("").replace("tests", "Tests"),
    ],
)
def test_the_json_schema_refuses_what_the_compiler_refuses(text: str) -> None:
    assert not compile_text(text).ok
    assert not jsonschema.Draft202012Validator(template_schema()).is_valid(yaml.safe_load(text))


def test_the_json_schema_describes_every_key() -> None:
    properties = template_schema()["properties"]
    assert set(properties) == {name for key in TEMPLATE.keys for name in key.spellings}
    assert all(value["description"].endswith(".") for value in properties.values())


def test_the_reference_file_is_current() -> None:
    file = Path(__file__).parents[3] / "docs" / "reference" / "template-schema.json"
    assert file.read_text() == json.dumps(template_schema(), indent=2) + "\n", "tasker template schema > " + file.name


def test_codes_are_unique_and_titled() -> None:
    assert all(title and code[0] == "T" and code[1:].isdigit() for code, title in CODES.items())


def retyped(value: object) -> object:
    """What an editor's YAML 1.2 parser would read: the test must not depend on ours."""
    if isinstance(value, dict):
        return {key: retyped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [retyped(item) for item in value]
    words = {"true": True, "false": False, "": None}
    if value in words:
        return words[value]
    try:
        number = float(str(value))
    except ValueError:
        return value
    return int(number) if number.is_integer() and "." not in str(value) else number
