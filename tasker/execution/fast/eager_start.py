"""Immediate start of the first steps of tasks submitted in a worker's process, without the queue.

The rows `linear4` and `runs4` pay for it: a task of four steps takes 0.80 of the time, and 0.81 of the program's CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tasker.engine.answers import StartableSubmission, SubmitAnswer
from tasker.execution.worker import Worker


class EagerStart:
    """Starter that offers the free slots of `worker` to a submission; `wake` makes it poll when nothing was claimed.

    Claims that this process does not know (the answer was lost, or its steps could not be started) are found and
    released by reconciliation (rule 4): `on_lost` is called then.
    """

    def __init__(self, worker: Worker, wake: Callable[[], None], *, on_lost: Callable[[], None]) -> None:
        self._worker, self._wake, self._on_lost = worker, wake, on_lost

    async def start(self, submit: StartableSubmission, roots: int, args: Mapping[str, Any]) -> SubmitAnswer:
        """Submit tasks as `EagerStarter.start` does.

        After an answer the tasks exist, even if their first steps do not start.
        """
        answers: list[SubmitAnswer] = []

        async def ask(slots: int) -> SubmitAnswer:
            caller = self._worker.caller(slots).args()
            answers.append(await submit({**caller, **args}))
            return self._still_ours(answers[0], caller)

        try:
            await self._worker.offer(ask, roots)
        except BaseException as error:
            self._on_lost()
            if not answers or not isinstance(error, Exception):
                raise
        if not answers[0].claims:
            self._wake()
        return answers[0]

    def _still_ours(self, answer: SubmitAnswer, caller: Mapping[str, Any]) -> SubmitAnswer:
        """Drop the claims of a registration that was given up meanwhile: the sweep takes them over."""
        return answer if self._worker.identity == caller["worker"] else replace(answer, claims=())
