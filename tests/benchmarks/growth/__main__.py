"""`make bench-growth`: one call each for a size and for a quarter of it, beside the bound.

What is linear takes about four times as long for four times as much. The plans of a small case, taken by the server
itself, are kept in `.benchmarks/growth/NAME.txt` (where the server has auto_explain).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tasker.db.connection import Connection
from tests.benchmarks.conditions import ROOT, Conditions
from tests.benchmarks.cpu import seconds_of, server_of
from tests.benchmarks.growth import children, crowds, disk, expansion, finished, namespaces, pages, templates, wide
from tests.benchmarks.growth.case import Case, lab_of
from tests.support.fleets.work import work_of
from tests.support.servers.run_folder import run_folder
from tests.support.servers.second_server import SETTINGS, programs, second_server

CASES = (*expansion.CASES, *wide.CASES, *templates.CASES, *crowds.CASES, *children.CASES)
BESIDE = {"disk": disk.lines, "finished": finished.lines, "namespaces": namespaces.lines}
"""What is measured in bytes, in pages and in statements."""
JIT = {"jit": "on"}
"""The default of a server that nobody has configured."""
EXPLAINED = 100
"""The plans are taken of a case that is so much smaller."""


def measure(conditions: Conditions, case: Case, size: int) -> tuple[float, float]:
    """Seconds that the call takes on a database of its own, and of CPU, here and in the server."""
    with conditions.database("tasker_growth") as url:
        lab = lab_of(url)
        call = case.prepare(lab, size)
        server = server_of(lab.one.connection)
        began, used = time.perf_counter(), time.process_time() + seconds_of(server)
        call()
        seconds, cpu = time.perf_counter() - began, time.process_time() + seconds_of(server) - used
        lab.close()
        return seconds, cpu


def plans(conditions: Conditions, case: Case) -> str:
    """What the call of a small case does, the heaviest statement first."""
    with conditions.database("tasker_growth") as url:
        lab = lab_of(url)
        work = work_of(lab.one, case.prepare(lab, max(4, case.size // EXPLAINED)))
        lab.close()
        return work.told()


def lines(conditions: Conditions, cases: list[Case], divide: int, folder: Path) -> Iterator[str]:
    """The table, line by line as it is measured."""
    yield f"{'':<16}{'size':>8} {'':<26}{'a quarter':>10}{'all of it':>11}{'ratio':>7}{'CPU':>10}{'bound':>9}"
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        size = max(8, case.size // divide)
        (folder / f"{case.name}.txt").write_text(plans(conditions, case))
        (quarter, _), (whole, cpu) = measure(conditions, case, size // 4), measure(conditions, case, size)
        verdict = "" if whole <= case.seconds else "  BEYOND"
        yield (
            f"{case.name:<16}{size:>8,} {case.unit:<26}{quarter:>8.3f} s{whole:>9.3f} s{whole / quarter:>7.1f}"
            f"{cpu:>8.2f} s{case.seconds:>7.1f} s{verdict}"
        )


@contextmanager
def server(folder: Path, url: str | None, *, jit: bool) -> Iterator[str]:
    """The URL of the server to measure on; what is started for it stops at the end."""
    if jit:
        if (binaries := programs()) is None:
            raise SystemExit("--jit: this machine has no PostgreSQL; install one (Debian: apt install postgresql)")
        with run_folder(f"growth-{os.getpid()}") as shared:
            yield second_server(shared, binaries, settings=SETTINGS | JIT)
        return
    if url:
        yield url
        return
    from tasker.db.embedded import EmbeddedServer

    embedded = EmbeddedServer.start(folder / "postgres", linger_seconds=2)
    try:
        yield embedded.url
    finally:
        embedded.stop()


def sessions(conditions: Conditions, *, jit: bool) -> Iterator[str]:
    """Whether the server compiles queries, and that a session of the product does not let it."""
    with conditions.database("tasker_growth") as url:
        with psycopg.connect(url) as plain:
            ((of_server,),) = plain.execute("show jit").fetchall()
        of_session = asyncio.run(_jit(url))
    verdict = "" if of_session == "off" and (of_server == "on" or not jit) else "  BEYOND"
    yield f"jit: {of_server} by default on this server, {of_session} in a session of the product{verdict}"


async def _jit(url: str) -> str:
    connection = Connection(url)
    try:
        return str((await connection.execute("show jit"))[0][0])
    finally:
        await connection.close()


def main() -> int:
    """Measure, print; 1 when a bound was missed."""
    names = [*(case.name for case in (*CASES, *pages.CASES)), *BESIDE]
    parser = argparse.ArgumentParser("make bench-growth", description=__doc__)
    parser.add_argument("--database-url", help="a server to measure on (default: an embedded one)")
    parser.add_argument(
        "--jit", action="store_true", help="on a private server of the installed PostgreSQL whose default is jit = on"
    )
    parser.add_argument("--only", nargs="*", default=names, choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--divide", type=int, default=1, metavar="N", help="only an Nth of the sizes: for trying out")
    options = parser.parse_args()
    missed = False
    with (
        tempfile.TemporaryDirectory(prefix="tasker-growth-") as name,
        server(Path(name), options.database_url, jit=options.jit) as url,
    ):
        for line in measured(Conditions(url, Path(name)), options):
            print(line, flush=True)
            missed = missed or line.endswith("BEYOND")
    return int(missed)


def measured(conditions: Conditions, options: argparse.Namespace) -> Iterator[str]:
    """All tables that were asked for, line by line."""
    yield from sessions(conditions, jit=options.jit)
    if chosen := [case for case in CASES if case.name in options.only]:
        yield from lines(conditions, chosen, options.divide, ROOT / ".benchmarks" / "growth")
    if flat := [case for case in pages.CASES if case.name in options.only]:
        yield from pages.lines(conditions, flat, options.divide)
    for name in (name for name in BESIDE if name in options.only):
        yield from BESIDE[name](conditions)


sys.exit(main())
