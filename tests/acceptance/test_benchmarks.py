"""Each benchmark runs, in its smallest form; how quick anything is, is nobody's promise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasker.db.database import ensure_database
from tasker.db.embedded import EmbeddedServer
from tests.benchmarks.compare import compared
from tests.benchmarks.conditions import ROOT
from tests.benchmarks.run import GROUPS, NAMES, chosen, main
from tests.benchmarks.shapes import READS
from tests.support.servers.private_postgres import copied

SMALLEST = ["--quick", "--divide", "100"]
LONG = ("scaling", "recovery", "start_up")
BRIEF = [
    [
        name
        for name in group
        if name in ("linear4_reads", "apart_linear4_reads")
        or not (name.endswith(READS) or name == "fan1000" or name.startswith(LONG))
    ]
    for group, _ in GROUPS
]
"""One of each kind by group, which shares its processes: those that read run the same code, and so does the wide task
beside the narrow one."""
OTHERS = [[name for name in group if name not in brief] for (group, _), brief in zip(GROUPS, BRIEF, strict=True)]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, cluster: Path) -> Iterator[EmbeddedServer]:
    """One server for all benchmarks."""
    folder = copied(cluster, tmp_path_factory.mktemp("benchmarks") / "postgres")
    server = EmbeddedServer.start(folder, settings={"fsync": "off"}, linger_seconds=1)
    ensure_database(server.url)
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        *(pytest.param(names, id=names[0], marks=pytest.mark.servers) for names in BRIEF if names),
        *(
            pytest.param(names, id=names[0], marks=pytest.mark.servers if "scaling-pgmq" in names else pytest.mark.long)
            for names in OTHERS
            if names
        ),
    ],
)
def test_a_benchmark_measures(
    names: list[str], database: EmbeddedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "figures.json"
    main([*SMALLEST, "--database-url", database.url, "--only", *names, "--output", str(output)])

    printed = capsys.readouterr()
    if "NOT TESTED" in printed.err:
        pytest.skip(printed.err)
    figures = json.loads(output.read_text())["figures"]
    assert figures
    assert all(figure["value"] > 0 for figure in figures)
    assert all(figure["name"] in printed.out for figure in figures)
    assert printed.err.count("[") > len(names)


@pytest.mark.long
def test_two_checkouts_are_compared_with_the_first_one_again(
    database: EmbeddedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*SMALLEST, "--database-url", database.url, "--only", "linear4_reads", "--output", str(tmp_path / "x.json")]
    main([*words, "--compare", str(ROOT)])

    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[-6:] == ["here", "other", "other/here", "rounds", "again/here", "rounds"]
    assert {row.split("  ")[0] for row in rows} >= {"linear4_reads", "linear4_reads cpu/step"}


def test_what_both_checkouts_have_is_compared_by_the_medians_of_the_rounds() -> None:
    here = [{"x": 10.0, "new": 1.0}, {"x": 20.0, "new": 1.0}, {"x": 30.0, "new": 1.0}]
    other = [{"x": 5.0}, {"x": 10.0}, {"x": 60.0}]

    _, *rows = compared({"here": here, "other": other, "again": here}).splitlines()

    assert [row.split() for row in rows] == [["x", "20.00", "10.00", "0.50", "0.50-2.00", "1.00", "1.00-1.00"]]


def test_a_benchmark_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(
        SystemExit, match=r"no benchmark nonsense; there are: linear3, .*linear4, .*recovery-orchestrator"
    ):
        main(["--only", "nonsense"])


def test_a_word_is_a_benchmark_or_the_beginning_of_several() -> None:
    assert chosen(["linear4"]) == ["linear4"]
    found = ["linear3", "linear4", "linear4_pure", "linear3_reads", "linear4_reads", "linear4_pure_reads"]
    assert chosen(["linear"]) == found
    assert chosen([]) == NAMES
