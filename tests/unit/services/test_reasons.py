"""The table of reasons: how its sentences are filled in, and that its page knows them all."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from tasker.views.explain_reasons import REASONS, filled
from tasker.views.explanation import words_of

PAGE = Path(__file__).parents[3] / "docs" / "why-does-it-not-move.md"


def test_a_part_of_a_sentence_without_its_words_is_left_out() -> None:
    text = "paused by {actor}[ because {because}][, since {when}]"

    assert filled(text, {"actor": "ada", "because": "", "when": "noon"}) == "paused by ada, since noon"
    assert filled(text, {"actor": "ada", "because": "the [bank] {is} down"}) == (
        "paused by ada because the [bank] {is} down"
    )


def test_the_page_has_a_row_for_each_reason() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)

    assert sorted(rows) == sorted(REASONS)


def test_remedy_of_an_unserved_step_names_its_plugin() -> None:
    def remedy(**values: object) -> str:
        words = words_of({"refused_by": ["w1"], **values}, datetime(2026, 1, 1, tzinfo=UTC), UTC)
        return filled(REASONS["unserved"].remedy, {"db": "", **words})

    assert remedy(handlers=["tasker.sql"], lacking=["orders"]).startswith(
        "start a worker that has the handler (plugin sql) and the resource orders;"
    )
    assert remedy(handlers=["pay"]).startswith("start a worker that has the handler; list")
