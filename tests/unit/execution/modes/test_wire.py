"""What crosses the border between a worker and its children."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from tasker.contracts.reporting import LogLine, ProgressReport
from tasker.execution.attempt.modes.wire import HEADER, frame, length_of_answer, parsed, report_from, said


def crossed(message: dict[str, Any]) -> dict[str, Any]:
    """A message as it arrives."""
    sent = frame(message)
    assert length_of_answer(sent[: HEADER.size]) == len(sent) - HEADER.size
    return parsed(sent[HEADER.size :])[1]


def test_what_a_handler_says_arrives_also_with_dictionaries_of_other_classes() -> None:
    line = LogLine(1.5, logging.INFO, "shop", "counted", {"letters": Counter("aab")})

    assert report_from(crossed(said(["step", 1, 1], line))) == line
    assert report_from(crossed(said(["step", 1, 1], progress := ProgressReport(0.5)))) == progress
