"""The embedded server of root in a folder that is closed to everybody else, as /root is and what `mktemp -d` makes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasker.db.embedded import EmbeddedServer, cluster, server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others run the server under their own account")

DAC_OVERRIDE = 1 << 1
SETPRIV = shutil.which("setpriv")


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder that only root may pass through."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    return folder


@contextmanager
def started(folder: Path) -> Iterator[psycopg.Connection[Any]]:
    found = EmbeddedServer.start(folder, settings={"fsync": "off"}, linger_seconds=0)
    try:
        with psycopg.connect(found.url) as connection:
            yield connection
    finally:
        assert found.stop()


def status_of(folder: Path) -> dict[str, list[str]]:
    pid = (folder / "data" / "postmaster.pid").read_text().splitlines()[0]
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


def copied_programs(folder: Path) -> Path:
    """PostgreSQL's programs and their libraries, as an environment in the folder has them; where the programs are."""
    installed = cluster.find_binaries().parent
    package = installed.parent
    for source in (installed, package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, folder / source.relative_to(package.parent), symlinks=True)
    return folder / package.name / installed.name / "bin"


@pytest.mark.skipif(sys.platform != "linux", reason="changing the account with a capability is Linux's")
def test_programs_and_data_below_a_private_folder_serve_and_nothing_is_opened(
    private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = copied_programs(private)
    monkeypatch.setattr(server, "find_binaries", lambda: programs)
    monkeypatch.setenv("PATH", "")

    with started(private / "postgres") as connection:
        connection.execute("create table kept as select 42 as answer")
        status = status_of(private / "postgres")
    with started(private / "postgres") as connection:
        row = connection.execute("select answer from kept").fetchone()

    assert row == (42,)
    assert "0" not in status["Uid"] + status["Gid"] + status["Groups"]
    assert int(status["CapEff"][0], 16) == int(status["CapPrm"][0], 16) == DAC_OVERRIDE
    assert private.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(SETPRIV is None, reason="needs setpriv, to take a capability away")
def test_a_root_without_the_capabilities_is_told_which_folder_is_closed(private: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tasker.db.embedded import EmbeddedServer as E; "
        "from tasker.errors import DatabaseUnavailable as D\n"
        "try: E.start(Path(sys.argv[1]))\nexcept D as error: print(error.message, error.hint, sep='; ')"
    )
    done = subprocess.run(
        [str(SETPRIV), "--bounding-set=-setpcap", sys.executable, "-c", code, str(private / "postgres")],
        capture_output=True,
        text=True,
        check=False,
    )
    closed = re.search(r"may not pass through ([^,]+),", done.stdout)
    assert closed, done.stderr
    assert private.is_relative_to(closed[1])
    assert f"`chmod o+x {closed[1]}`" in done.stdout
