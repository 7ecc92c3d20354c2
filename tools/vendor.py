"""Fetches the files of other people that the web page uses, and checks that they are what was chosen.

python -m tools.vendor            # fetch what `vendored.toml` names (needs npm), write files, licences and sums
python -m tools.vendor --check    # compare the files with the sums; exit code 1 where they differ
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

FOLDER = Path(__file__).parents[1] / "tasker" / "server" / "web" / "static" / "vendor"
LIST = FOLDER / "vendored.toml"
HEAD = "".join(line for line in LIST.read_text().splitlines(keepends=True) if line.startswith("#"))


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    entries = tomllib.loads(LIST.read_text())["file"]
    if arguments == ["--check"]:
        found = list(differences(entries))
        print("\n".join(found) or f"{len(entries)} files are what they should be")
        return 1 if found else 0
    written = [fetched(entry) for entry in entries]
    LIST.write_text(f"{HEAD}\n{tomli_w.dumps({'file': written})}")
    return 0


def differences(entries: list[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each file that is missing, another one, without its licence, or that nobody named."""
    for entry in entries:
        path = FOLDER / entry["name"]
        if not path.is_file() or sum_of(path.read_bytes()) != entry["sha256"]:
            yield f"{entry['name']} is not that of {entry['package']} {entry['version']}: run python -m tools.vendor"
        if not licence_of(entry).is_file():
            yield f"{licence_of(entry).name} is missing: run python -m tools.vendor"
    named = {LIST.name, *(entry["name"] for entry in entries), *(licence_of(entry).name for entry in entries)}
    yield from (f"{path.name} is not named in {LIST.name}" for path in FOLDER.iterdir() if path.name not in named)


def fetched(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Write one file with its licence; the entry with its sum."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"{entry['package']}@{entry['version']}"
        subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as packed:
            content = member(packed, entry["path"])
            licence_of(entry).write_bytes(member(packed, "LICENSE"))
    (FOLDER / entry["name"]).write_bytes(content)
    print(f"{entry['name']}: {name}, {len(content):,} bytes")
    return {**entry, "sha256": sum_of(content)}


def member(packed: tarfile.TarFile, path: str) -> bytes:
    """A file of a package."""
    opened = packed.extractfile(f"package/{path}")
    assert opened
    return opened.read()


def licence_of(entry: Mapping[str, Any]) -> Path:
    """Where the licence of a package is kept."""
    return FOLDER / f"LICENSE-{entry['package']}.txt"


def sum_of(content: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
