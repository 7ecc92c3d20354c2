"""docs/templates.md is complete, and its snippets are templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasker.template.compile import compile_text
from tasker.template.diagnostics import ERRORS, WARNINGS
from tasker.template.mapping import Mapping
from tasker.template.model import TEMPLATE
from tasker.template.report import render_text
from tasker.template.retry import RETRY_PROFILES
from tasker.template.value_kinds import Choice, ListOf, MapOf, ValueKind
from tests.support.tables import for_each
from tests.unit.template.support import steps

PAGE = (Path(__file__).parents[3] / "docs" / "templates.md").read_text()
SNIPPETS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def words_of(shape: ValueKind) -> Iterator[str]:
    if isinstance(shape, (ListOf, MapOf)):
        yield from words_of(shape.item)
    elif isinstance(shape, Choice):
        yield from shape.values
    elif isinstance(shape, Mapping):
        for key in shape.keys:
            yield from key.spellings
            yield from words_of(key.shape)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_snippet_is_a_template_without_a_problem(snippet: str) -> None:
    result = compile_text(snippet if snippet.startswith("name:") else steps(snippet))
    assert render_text(result.diagnostics, result.sources) == ""
    assert len(result.plans) == 1


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 6


@for_each(sorted({*words_of(TEMPLATE), *RETRY_PROFILES}))
def test_every_key_word_and_profile_is_explained(word: str) -> None:
    assert re.search(rf"`[^`\n]*\b{word}\b[^`\n]*`", PAGE)


def test_every_code_is_listed_with_its_meaning() -> None:
    rows = dict(re.findall(r"^\| (T\d+) \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows == {**ERRORS, **WARNINGS}


def test_the_sample_message_is_what_the_compiler_says() -> None:
    sample = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]
    text = SNIPPETS[0].replace("dependencies: [validate_order]", "dependancies: [validate_order]", 1)
    result = compile_text(text, file="workflow.yaml")
    assert render_text(result.diagnostics, result.sources) + "\n" == sample
