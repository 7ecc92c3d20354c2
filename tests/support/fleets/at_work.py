"""A worker in a few lines: it claims, refuses what it has no handler for, finishes the rest, releases held steps."""

from __future__ import annotations

from typing import Any

from tests.support.engine_fixture import Lab, Session, change


class AtWork:
    """`session` as a registered worker that has no handler for the steps named in `lacks`.

    `old`: it refuses them because it cannot read their templates.
    `done` are the names of the steps that it has finished, in their order; `calls` counts its round trips.
    """

    def __init__(self, lab: Lab, session: Session, *lacks: str, slots: int = 1, old: bool = False) -> None:
        self.lab, self.session, self.lacks, self.slots, self.old = lab, session, lacks, slots, old
        self.unserved: set[str] = set()
        self.done: list[str] = []
        self.tasks: list[str] = []
        self.calls = 0
        session.start_worker()

    def look(self, **more: Any) -> bool:
        """One look as `Claimer` takes it, and what comes of it; false when nothing was there."""
        args = {"unserved": sorted(self.unserved), **more}
        answer = self.session.claim_answer(self.slots, **args)
        claims, found = list(answer.get("claims") or ()), answer["popped"]
        self.calls += 1
        if answer.get("release"):
            room = {**args, "slots": self.slots - len(claims), "namespace_ids": answer["release"]}
            released = self.session.call("backlog", self.session.args(**room))
            claims += released.get("claims") or ()
            found += released.get("released", 0)
            self.calls += 1
        for claim in claims:
            self._run(claim)
        return bool(found)

    def work(self, rounds: int = 100, **more: Any) -> AtWork:
        """Look until nothing is there, at most so often."""
        for _ in range(rounds):
            if not self.look(**more):
                break
        return self

    def _run(self, claim: Any) -> None:
        if claim["name"] in self.lacks:
            self.unserved.add(f"{claim['template']}:{claim['ordinal']}")
            note = {"unreadable" if self.old else "unserved": claim["name"]}
            self.session.advance(change("release", claim, n=note))
        else:
            self.session.finish(claim)
            self.done.append(claim["name"])
            self.tasks.append(claim["task"])
