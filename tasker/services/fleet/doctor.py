"""Diagnosis of a fleet and its database, with a fix for each finding (`tasker doctor`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.db.queries import query
from tasker.services.checks import EXAMPLES, MENDED, SLICE, Broken, TaskChecks
from tasker.services.engine.calls import Engine
from tasker.version import __version__

OPEN = 20_000
"""Maximum number of open tasks read, oldest first; `tasker db check` reads all."""
SAMPLE = 100
"""Number of finished tasks read: that many of the newest, and that many at random."""
CLOCK_TOLERANCE_MS = 10_000
"""Tolerated clock difference: a process creates its identifier some time before it is registered."""
CONNECTIONS = 6
"""Maximum number of database connections of a process."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """Finding of one of the `CHECKS`, with examples and the `fix`.

    `wrong` is False for problems that repair themselves and for mere information.
    """

    check: str
    what: str
    fix: str
    wrong: bool = True
    examples: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LiveProcessRow:
    """Process with a valid lease; `ahead_ms` is the difference of its clock from the database's when it started."""

    name: str
    kind: str
    host: str
    version: str
    backend: str
    namespaces: Sequence[str]
    slots: int
    ahead_ms: int


CHECKS = ("versions", "connections", "settings", "clocks", "rows", "queues")


class Doctor:
    """Read-only diagnosis; `window` is this process's enqueue window, `expected` the expected connections of the fleet.

    All methods raise `DatabaseError` and `MessagingError`.
    """

    def __init__(self, engine: Engine, window: int, expected: int) -> None:
        self._engine, self._window, self._expected = engine, window, expected
        self._checks = TaskChecks(engine)

    async def findings(self) -> list[DoctorFinding]:
        """Return all findings in the order of `CHECKS`, from the oldest open tasks and a sample of finished ones."""
        fleet = [LiveProcessRow(*row) for row in await self._rows("processes")]
        found = [*versions(fleet), *await self._connections(), *await self._unexpected(), *await self._upkeep()]
        found += [*settings(fleet, self._window, self._engine), *clocks(fleet), *await self._own_clock()]
        found += await self._tasks(fleet)
        return sorted(found, key=lambda each: CHECKS.index(each.check))

    async def _connections(self) -> list[DoctorFinding]:
        statement = query("database", "capacity")
        ((allowed, reserved, in_use, live),) = await self._engine.connection.execute(statement)
        room, needed = allowed - reserved, live * CONNECTIONS
        if needed <= room and in_use < 0.9 * room:
            return []
        what = f"{in_use} of {room} connections are used, and {live} processes take up to {needed}"
        fix = "raise max_connections of the server, put a pooler in front, or start fewer processes"
        return [DoctorFinding("connections", what, fix)]

    async def _unexpected(self) -> list[DoctorFinding]:
        ((ours,),) = await self._engine.connection.execute(query("database", "ours"))
        if ours <= self._expected:
            return []
        what = f"{ours} connections to this database are Tasker's, and {self._expected} are expected"
        fix = "list them by application_name in pg_stat_activity; if the number is intended, set "
        fix += "orchestration.web.database_pools.max_total_connections_hint"
        return [DoctorFinding("connections", what, fix, wrong=False)]

    async def _upkeep(self) -> list[DoctorFinding]:
        ((kept,),) = await self._engine.connection.execute(query("database", "upkeep"))
        if kept:
            return []
        what = "autovacuum is disabled on this server: outdated statistics make queries slow"
        return [DoctorFinding("settings", what, "set autovacuum = on and track_counts = on, and reload the server")]

    async def _own_clock(self) -> list[DoctorFinding]:
        before = datetime.now(UTC)
        ((now,),) = await self._rows("now")
        ahead = (before + (datetime.now(UTC) - before) / 2 - now).total_seconds() * 1000
        return clock("this machine", round(ahead)) if abs(ahead) > CLOCK_TOLERANCE_MS else []

    async def _tasks(self, fleet: Sequence[LiveProcessRow]) -> list[DoctorFinding]:
        broken, lost, parked, read = Broken(), list[str](), False, 0
        without: dict[str, list[str]] = {}
        broken.add(await self._checks.rows("fleet_violations"))
        found: list[DoctorFinding] = []
        async for tasks in self._checks.slices("open", SLICE):
            if read >= OPEN:
                found.append(not_all_read(read))
                break
            read += len(tasks)
            broken.add(await self._checks.rows("violations", tasks=tasks))
            for namespace, steps in await self._checks.without_message(tasks):
                without.setdefault(namespace, []).extend(steps)
            lost += await self._checks.unheld(tasks)
            parked = parked or (await self._rows("parked", tasks=tasks))[0][0]
        if finished := [row[0] for row in await self._rows("finished", number=SAMPLE)]:
            broken.add(await self._checks.rows("violations", tasks=finished))
        found += [violation(rule, subjects) for rule, subjects in broken.items()]
        found += [without_message(*missing) for missing in sorted(without.items())]
        found += [unheld(lost, bool(fleet))] if lost else []
        if parked and not any(each.kind == "orchestrator" for each in fleet):
            what = "results wait for an orchestrator, but none is running"
            found.append(DoctorFinding("queues", what, "start one: tasker orchestrator; or set result_path to inline"))
        return found

    async def _rows(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("doctor", name), params)


def versions(fleet: Sequence[LiveProcessRow]) -> list[DoctorFinding]:
    """Return a finding if processes have another release than this one."""
    others = Counter(each.version for each in fleet if each.version != __version__)
    examples = [f"{each.name} on {each.host}: {each.version or 'unknown'}" for each in fleet if each.version in others]
    if not others:
        return []
    what = f"{others.total()} of {len(fleet)} processes run another release than this one, {__version__}"
    fix = "finish the rolling upgrade: restart them with the same release"
    return [DoctorFinding("versions", what, fix, examples=examples[:EXAMPLES])]


def settings(fleet: Sequence[LiveProcessRow], window: int, engine: Engine) -> list[DoctorFinding]:
    """Return findings of settings that contradict those of other processes."""
    found: list[DoctorFinding] = []
    provider = engine.messaging.provider_name()
    if strangers := [each for each in fleet if each.backend and each.backend != provider]:
        what = f"{len(strangers)} of {len(fleet)} processes use another messaging provider than {provider}"
        fix = "they do not see its messages: configure the same backend everywhere; to migrate: tasker broker migrate"
        named = [f"{each.name} on {each.host}: {each.backend}" for each in strangers]
        found.append(DoctorFinding("settings", what, fix, examples=named[:EXAMPLES]))
    slots = Counter[str]()
    for each in fleet:
        slots.update(dict.fromkeys(each.namespaces, each.slots) if each.kind == "worker" else {})
    for namespace, number in slots.items():
        if number > window:
            what = f"workers of {namespace} have {number} slots, but its queue holds only {window} steps"
            fix = "raise common.execution.enqueue_window above the sum of max_concurrent_handlers"
            found.append(DoctorFinding("settings", what, fix))
    return found


def clocks(fleet: Sequence[LiveProcessRow]) -> list[DoctorFinding]:
    """Return findings of processes whose clocks were wrong when they started."""
    wrong = [each for each in fleet if abs(each.ahead_ms) > CLOCK_TOLERANCE_MS]
    return [found for each in wrong for found in clock(f"{each.kind} {each.name} on {each.host}", each.ahead_ms)]


def clock(whose: str, ahead_ms: int) -> list[DoctorFinding]:
    """Return the finding of a wrong clock."""
    where = "ahead of" if ahead_ms > 0 else "behind"
    what = f"the clock of {whose} is {abs(ahead_ms) / 1000:.0f} s {where} the database's"
    return [
        DoctorFinding("clocks", what, "synchronize it with NTP: the order of new tasks and identifiers depends on it")
    ]


def violation(rule: str, examples: Sequence[str]) -> DoctorFinding:
    mends = rule in MENDED
    fix = "the next sweep repairs it" if mends else "no sweep repairs it: please report it; see `tasker db check`"
    return DoctorFinding("rows", f"{rule}: {len(examples)}", fix, not mends, examples[:EXAMPLES])


def not_all_read(number: int) -> DoctorFinding:
    what = f"the {number:,} oldest open tasks were read; there are more"
    return DoctorFinding("rows", what, "check all of them: tasker db check", wrong=False)


def without_message(namespace: str, steps: Sequence[str]) -> DoctorFinding:
    """Return the finding of enqueued steps without a message in the queue."""
    what = f"enqueued in {namespace}, without a message: {len(steps)}"
    fix = "sweeps send them again; if the number does not drop, no process is running: start tasker worker"
    return DoctorFinding("queues", what, fix, wrong=False, examples=steps[:EXAMPLES])


def unheld(steps: Sequence[str], swept: bool) -> DoctorFinding:
    """Return the finding of steps claimed by workers that are no longer alive."""
    fix = (
        "the next sweep releases them"
        if swept
        else "no process runs sweeps: start tasker worker or tasker orchestrator"
    )
    what = f"in progress on a worker that is not alive: {len(steps)}"
    return DoctorFinding("queues", what, fix, wrong=not swept, examples=steps[:EXAMPLES])


def to_dict(found: Sequence[DoctorFinding]) -> dict[str, Any]:
    """Return the findings as a mapping of plain values (`tasker doctor --format json`)."""
    return {"wrong": any(each.wrong for each in found), "checks": CHECKS, "findings": [asdict(each) for each in found]}
