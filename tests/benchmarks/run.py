"""`make bench`: latency, throughput, start-up, fleets and recovery, as tables or JSON.

The machine is shared and noisy: compare figures of one run with each other, not with those of another day.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from _pytest.outcomes import Skipped

from tests.benchmarks import (
    apart,
    http_sizes,
    memory,
    one_process,
    over_http,
    recovery,
    scaling,
    start_up,
    submitting,
    telemetry,
    web_pages,
)
from tests.benchmarks.compare import compare, compared
from tests.benchmarks.conditions import ROOT, Conditions, Figure
from tests.benchmarks.report import as_json, table

Measure = Callable[[Conditions, Mapping[str, None], Callable[[str], None]], Iterator[Figure]]
GROUPS: Sequence[tuple[Sequence[str], Measure]] = (
    (one_process.NAMES, one_process.measure),
    (start_up.NAMES, start_up.measure),
    (submitting.NAMES, submitting.measure),
    (telemetry.NAMES, telemetry.measure),
    (apart.NAMES, apart.measure),
    (over_http.NAMES, over_http.measure),
    (http_sizes.NAMES, http_sizes.measure),
    (web_pages.NAMES, web_pages.measure),
    (memory.NAMES, memory.measure),
    *(((name,), scaling.measure) for name in scaling.NAMES),
    *(((name,), recovery.measure) for name in recovery.NAMES),
)
NAMES = [name for names, _ in GROUPS for name in names]


def chosen(only: Sequence[str]) -> list[str]:
    """The benchmarks that these words mean: a name, else the beginning of several. Raises `SystemExit` for another."""
    unknown = [word for word in only if not any(name.startswith(word) for name in NAMES)]
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    wanted = {name for word in only for name in ([word] if word in NAMES else NAMES) if name.startswith(word)}
    return [name for name in NAMES if not only or name in wanted]


def measure(conditions: Conditions, names: Sequence[str], tell: Callable[[str], None]) -> Iterator[Figure]:
    """The figures of these benchmarks, each group as soon as it is there. What needs an absent server is told."""
    for group, run in GROUPS:
        wanted = dict.fromkeys(name for name in group if name in names)
        if wanted:
            try:
                yield from run(conditions, wanted, tell)
            except Skipped as absent:
                tell(f"{', '.join(wanted)}: {absent}")


@contextmanager
def grounded(options: argparse.Namespace) -> Iterator[Conditions]:
    """The database that was named, or an embedded server for this run."""
    from tasker.db.embedded import EmbeddedServer

    with tempfile.TemporaryDirectory(prefix="tasker-bench-") as folder:
        server = None if options.database_url else EmbeddedServer.start(Path(folder) / "postgres", linger_seconds=2)
        url = options.database_url or (server.url if server else "")
        try:
            yield Conditions(url, Path(folder), options.backend, options.quick, options.divide)
        finally:
            if server:
                server.stop()


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("make bench", description=__doc__)
    parser.add_argument("--database-url", help="a server to measure on (default: an embedded one)")
    parser.add_argument("--backend", default="pgmq", help="of latency and throughput in one process")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--output", type=Path, default=ROOT / ".benchmarks" / "latest.json", help="JSON goes here too")
    parser.add_argument("--divide", type=int, default=1, metavar="N", help="only an Nth of the work: for trying out")
    parser.add_argument("--compare", type=Path, metavar="TREE", help="in turns with another checkout, three rounds")
    return parser.parse_args(words)


def _compared(options: argparse.Namespace, tell: Callable[[str], None]) -> str:
    """The table of both checkouts. The figures of each turn stay beside the output."""
    words = ["--backend", options.backend, "--divide", str(options.divide), *["--quick"] * options.quick]
    words += ["--database-url", options.database_url] if options.database_url else []
    words += ["--only", *options.only] if options.only else []
    folder = options.output.parent / "compare"
    folder.mkdir(parents=True, exist_ok=True)
    return compared(compare(options.compare, words, folder, tell))


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    options = arguments(words)
    names, started = chosen(options.only), time.monotonic()

    def tell(what: str) -> None:
        print(f"[{time.monotonic() - started:5.0f} s] {what}", file=sys.stderr, flush=True)

    if options.compare:
        print(_compared(options, tell))
        return
    figures: list[Figure] = []
    try:
        with grounded(options) as conditions:
            figures.extend(measure(conditions, names, tell))
    finally:  # a run that was stopped has measured something, too
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(as_json(figures))
        print(table(figures) if options.format == "table" else as_json(figures))
        tell(f"written to {options.output}")
