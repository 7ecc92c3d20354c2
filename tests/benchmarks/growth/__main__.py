"""`make bench-growth`: one call each for a size and for a quarter of it, beside the bound.

What is linear takes about four times as long for four times as much. The plans of a small case, taken by the server
itself, are kept in `.benchmarks/growth/NAME.txt` (where the server has auto_explain).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.conditions import ROOT, Conditions
from tests.benchmarks.cpu import seconds_of, server_of
from tests.benchmarks.growth import crowds, disk, expansion, finished, namespaces, pages, templates, wide
from tests.benchmarks.growth.case import Case
from tests.support.engine_fixture import Lab
from tests.support.fleets.work import work_of

CASES = (*expansion.CASES, *wide.CASES, *templates.CASES, *crowds.CASES)
BESIDE = {"disk": disk.lines, "finished": finished.lines, "namespaces": namespaces.lines}
"""What is measured in bytes, in pages and in statements."""
EXPLAINED = 100
"""The plans are taken of a case that is so much smaller."""


def measure(conditions: Conditions, case: Case, size: int) -> tuple[float, float]:
    """Seconds that the call takes on a database of its own, and of CPU, here and in the server."""
    with conditions.database("tasker_growth") as url:
        lab = Lab(url)
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
        lab = Lab(url)
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


def main() -> int:
    """Measure, print; 1 when a bound was missed."""
    names = [*(case.name for case in (*CASES, *pages.CASES)), *BESIDE]
    parser = argparse.ArgumentParser("make bench-growth", description=__doc__)
    parser.add_argument("--database-url", help="a server to measure on (default: an embedded one)")
    parser.add_argument("--only", nargs="*", default=names, choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--divide", type=int, default=1, metavar="N", help="only an Nth of the sizes: for trying out")
    options = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory(prefix="tasker-growth-") as folder:
        from tasker.db.embedded import EmbeddedServer

        server = None if options.database_url else EmbeddedServer.start(Path(folder) / "postgres", linger_seconds=2)
        try:
            conditions = Conditions(options.database_url or (server.url if server else ""), Path(folder))
            chosen = [case for case in CASES if case.name in options.only]
            for line in lines(conditions, chosen, options.divide, ROOT / ".benchmarks" / "growth") if chosen else ():
                print(line, flush=True)
                missed = missed or line.endswith("BEYOND")
            flat = [case for case in pages.CASES if case.name in options.only]
            for line in pages.lines(conditions, flat, options.divide) if flat else ():
                print(line, flush=True)
                missed = missed or line.endswith("BEYOND")
            for name in (name for name in BESIDE if name in options.only):
                for line in BESIDE[name](conditions):
                    print(line, flush=True)
                    missed = missed or line.endswith("BEYOND")
        finally:
            if server:
                server.stop()
    return int(missed)


sys.exit(main())
