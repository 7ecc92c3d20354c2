"""What crosses the border between a worker and its children."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

from tasker.execution.modes.wire import (
    HEADER,
    LONGEST_ANSWER,
    MARK,
    CallId,
    NotAFrame,
    answer,
    frame,
    length_of_answer,
    parse_output,
    parsed,
    report_from,
)
from tasker.handlers.claims import Success
from tasker.json_values import VALUE_LIMIT_BYTES, encode
from tasker.logging.current_step import LogLine, ProgressReport

CALL: CallId = ["step", 1, 1]
LARGEST_RESULT = 64 * 1024 * 1024
"""Bytes that `result_limit_bytes` may be."""
WORTH_A_HEAD = 200
"""Bytes around what a handler has answered."""


def crossed(message: dict[str, Any]) -> dict[str, Any]:
    """A message as it arrives."""
    sent = frame(message)
    assert length_of_answer(sent[: HEADER.size]) == len(sent) - HEADER.size
    return parsed(sent[HEADER.size :])[1]


def test_what_a_handler_says_arrives_also_with_dictionaries_of_other_classes() -> None:
    line = LogLine(1.5, logging.INFO, "shop", "counted", {"letters": Counter("aab")})

    assert report_from(crossed(parse_output(CALL, line))) == line
    assert report_from(crossed(parse_output(CALL, progress := ProgressReport(0.5)))) == progress


@pytest.mark.parametrize("letters", ["я", "\N{GRINNING FACE}", '"', "\\", "\n", "\x1f"])
def test_a_result_is_in_an_answer_at_most_twice_as_long_as_it_is_stored(letters: str) -> None:
    encoded = encode({"text": letters * 10_000})

    assert len(frame(answer(CALL, Success(encoded)))) < 2 * encoded.size + WORTH_A_HEAD


def test_an_answer_with_the_largest_result_and_metadata_that_may_be_stored_is_not_too_long() -> None:
    assert length_of_answer(HEADER.pack(MARK, 2 * LARGEST_RESULT + 2 * VALUE_LIMIT_BYTES + WORTH_A_HEAD))
    with pytest.raises(NotAFrame):
        length_of_answer(HEADER.pack(MARK, LONGEST_ANSWER + 1))


def test_text_that_is_no_text_arrives_as_it_is() -> None:
    line = LogLine(1.5, logging.INFO, "shop", "the file \udcff", None)

    assert report_from(crossed(parse_output(CALL, line))) == line
