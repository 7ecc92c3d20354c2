"""Failures that are the same mistake have the same fingerprint."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.engine.retry import fingerprint, normalized
from tasker.errors.tracebacks import raised_in

PLACES = [
    ("handlers.py", 12, "charge"),
    ("handlers.py", 340, "charge"),
    ("other.py", 12, "charge"),
    ("handlers.py", 1, "refund"),
]


def failure(message: str = "no route to host", *, kind: str = "OSError", **more: Any) -> dict[str, Any]:
    known = {"error_type": "unexpected_error", "handler": "charge", "metadata": {"exception_type": kind}}
    return {"message": message, **known, **more}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 is too large", "order 90210 is too large"),
        ("no task 0199c1f4-8a52-7b3e-9f21-4a1b2c3d4e5f", "no task 0199c1f4-aaaa-7b3e-9f21-4a1b2c3d4e5f"),
        ("expired at 2026-01-02T03:04:05Z", "expired at 2027-11-12 13:14:15.678+01:00"),
        ("unknown key 'a'", "unknown key 'another one'"),
        ("object at 0x7f00dead", "object at 0x1"),
        ("commit 1f3a9bc27d", "commit ffaa0123bc"),
        ("wait 1.5 s\n  now", "Wait 20 s now"),
    ],
)
def test_what_a_message_is_about_does_not_count(one: str, other: str) -> None:
    assert fingerprint(failure(one)) == fingerprint(failure(other))


@pytest.mark.parametrize(
    "other", [failure("no way to host"), failure(kind="TimeoutError"), failure(error_code="CARD_DECLINED")]
)
def test_another_message_type_or_code_is_another_mistake(other: dict[str, Any]) -> None:
    assert fingerprint(failure()) != fingerprint(other)


def test_another_place_is_another_mistake_and_another_line_of_it_is_not() -> None:
    places = [
        raised_in({"traceback": f'  File "/srv/{file}", line {line}, in {function}\n'})
        for file, line, function in PLACES
    ]
    prints = [fingerprint(failure(), place) for place in places]

    assert places[0] == "handlers.py charge"
    assert prints[0] == prints[1]
    assert len({*prints}) == 3


def test_a_failure_without_an_exception_is_known_by_its_type_and_handler() -> None:
    declined = {"message": "declined", "error_type": "payment", "handler": "charge"}
    assert fingerprint(declined) != fingerprint({**declined, "handler": "refund"})
    assert fingerprint(declined) != fingerprint({**declined, "error_type": "validation"})


@pytest.mark.parametrize("odd", [{}, {"metadata": None}, {"metadata": "text", "message": 7}, {"message": "\ud800"}])
def test_any_failure_has_one(odd: dict[str, Any]) -> None:
    assert len(fingerprint(odd)) == 16


def test_words_stay() -> None:
    assert normalized('Key "x" of 3 missing in décor') == "key <text> of <n> missing in décor"
