"""Asking a plugin: its answer, or why there is none. Who asks waits, and not for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any

ANSWER_SECONDS = 5.0
"""How long an answer is waited for."""


class NoAnswer(Exception):
    """The function has not returned in time; its thread is left to itself."""


def answer_of(function: Callable[..., Any], values: Sequence[Any] = (), seconds: float = ANSWER_SECONDS) -> Any:
    """What the function returns, called in a thread of its own. Raises what it raises, and `NoAnswer`."""
    answer: Future[Any] = Future()

    def call() -> None:
        try:
            answer.set_result(function(*values))
        except BaseException as error:  # also sys.exit: what a plugin wants ends nothing of ours
            answer.set_exception(error)

    Thread(target=call, name="tasker asks a plugin", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():  # its own
            raise
        raise NoAnswer(f"it has not answered within {seconds:g} seconds") from None
