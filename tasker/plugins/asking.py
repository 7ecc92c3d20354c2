"""Calls of plugin functions whose return value is needed, with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any

ANSWER_SECONDS = 5.0
"""Time limit of a call in seconds."""


class NoAnswer(Exception):
    """Raised if the function does not return in time; its thread is abandoned."""


def answer_of(function: Callable[..., Any], values: Sequence[Any] = (), seconds: float = ANSWER_SECONDS) -> Any:
    """Return the result of a function called in a thread of its own.

    Raises the function's exception, or `NoAnswer` after `seconds`.
    """
    answer: Future[Any] = Future()

    def call() -> None:
        try:
            answer.set_result(function(*values))
        except BaseException as error:  # includes sys.exit, which must not end the caller
            answer.set_exception(error)

    Thread(target=call, name="tasker asks a plugin", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():  # raised by the function itself
            raise
        raise NoAnswer(f"it has not answered within {seconds:g} seconds") from None
