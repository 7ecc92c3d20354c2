"""Installs this checkout into the environment of the Python that runs it, and shows that it goes on.

    python tools/install.py EXTRAS

Standard library only. What an older checkout installed under the name `tasker` goes: kept, it would offer every entry
point a second time.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"^[\w.-]+")
COMMANDS = ("tasker", "tasker-ctl")
SCRIPT = """{first}
from tasker.__main__ import main

if __name__ == "__main__":
    main()
"""
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def main(extras: str) -> int:
    """Install with these extras; returns pip's exit code. What pip has to complain about goes to standard error."""
    began = time.monotonic()
    print(f"installing Tasker ({extras}) into {sys.prefix}, once", flush=True)
    subprocess.run([*PIP, "uninstall", "-qq", "--yes", "tasker"], check=False)
    command = [*PIP, "install", "--progress-bar", "off", "-e", f"{ROOT}[{extras}]"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pip:
        assert pip.stdout
        _show(pip.stdout)
    start_at_once(Path(sys.executable).parent)
    print(f"installed in {time.monotonic() - began:.0f} s" if pip.returncode == 0 else "not installed", flush=True)
    return pip.returncode


def start_at_once(folder: Path) -> None:
    """Make the commands begin with our code, which deals with Ctrl-C: the scripts of older pips import `re` before it,
    which takes longer than all else until then, and shows Python's own traceback meanwhile."""
    for script in (folder / name for name in COMMANDS):
        if script.is_file() and "import re\n" in (text := script.read_text()):
            script.write_text(SCRIPT.format(first=text.partition("\n")[0]))


def _show(lines: Iterable[str]) -> None:
    """One line of names that grows while packages are looked for, and one when they are unpacked."""
    print("  looking for", end="", flush=True)
    for line in lines:
        first, _, rest = line.strip().partition(" ")
        if first == "Collecting":
            print("", *NAME.findall(rest), end="", flush=True)
        elif line.startswith("Installing collected packages:"):
            print(f"\n  unpacking {line.count(',') + 1} packages", end="", flush=True)
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
