"""Each benchmark runs, in its smallest form; how quick anything is, is nobody's promise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasker.db.database import ensure_database
from tasker.db.embedded import EmbeddedServer
from tests.benchmarks.run import NAMES, main

SMALLEST = ["--quick", "--divide", "100"]
IN_ONE_PROCESS = [name for name in NAMES if not name.startswith(("scaling", "recovery", "start_up"))]
OTHERS = [[name] for name in NAMES if name not in IN_ONE_PROCESS]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """One server for all benchmarks."""
    folder = tmp_path_factory.mktemp("benchmarks")
    server = EmbeddedServer.start(folder / "postgres", settings={"fsync": "off"}, linger_seconds=1)
    ensure_database(server.url)
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(IN_ONE_PROCESS, id="in_one_process"),
        *(
            pytest.param([name], id=name, marks=[] if name == "scaling-pgmq" else pytest.mark.long)
            for (name,) in OTHERS
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


def test_a_benchmark_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(SystemExit, match=r"no benchmark nonsense; there are: linear4, .*recovery-orchestrator"):
        main(["--only", "nonsense"])
