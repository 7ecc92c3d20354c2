"""The embedded server of root in a folder that is closed to everybody else, as /root is and what `mktemp -d` makes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasker.db.embedded import EmbeddedServer, cluster, server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others run the server under their own account")

DAC_OVERRIDE = 1 << 1
Refusal = Callable[[str], str]
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


@pytest.fixture
def refusal(private: Path) -> Refusal:
    """What a start below the private folder says to a root without these capabilities."""
    code = (
        "import sys; from pathlib import Path; from tasker.db.embedded import EmbeddedServer as E; "
        "from tasker.errors import DatabaseUnavailable as D\n"
        "try: E.start(Path(sys.argv[1]))\nexcept D as error: print(error.message, error.hint, sep='; ')"
    )

    def of(bounding: str) -> str:
        command = [str(SETPRIV), f"--bounding-set={bounding}", sys.executable, "-c", code, str(private / "postgres")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.stdout

    return of


@pytest.mark.skipif(SETPRIV is None, reason="needs setpriv, to take a capability away")
def test_a_root_that_cannot_lend_its_right_to_pass_is_told_which_folder_is_closed(
    private: Path, refusal: Refusal
) -> None:
    said = refusal("-setpcap")

    closed = re.search(r"may not pass through ([^,]+), and root lacks setpcap", said)
    assert closed, said
    assert private.is_relative_to(closed[1])
    assert f"`chmod o+x {closed[1]}`" in said


@pytest.mark.skipif(SETPRIV is None, reason="needs setpriv, to take a capability away")
@pytest.mark.parametrize(
    ("bounding", "lacks"),
    [
        ("-all", "chown, dac_override, kill, setgid, setuid"),
        ("-chown,-kill", "chown, kill"),
        ("-dac_override,-setgid", "dac_override, setgid"),
    ],
)
def test_a_root_that_may_not_run_a_server_as_somebody_else_is_told_what_it_lacks(
    private: Path, refusal: Refusal, bounding: str, lacks: str
) -> None:
    said = refusal(bounding)

    assert f"it lacks the capabilities {lacks}; run as another user" in said
    assert "chmod" not in said  # opening folders would not help
    assert not (private / "postgres" / "data.new").exists()
