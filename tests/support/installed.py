"""An environment in which wheels of checkouts are installed, and nothing else of them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TRANSIENT = ("DATABASE_URL", "PYTHONPATH", "TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT")


def run(*command: str | Path, cwd: Path) -> str:
    """What the command prints."""
    plain = {name: value for name, value in os.environ.items() if name not in TRANSIENT}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and an empty folder to work in."""

    folder: Path
    work: Path

    @classmethod
    def of_wheels(cls, folder: Path, sources: Sequence[Path]) -> Environment:
        """Only the wheels of these checkouts are installed; what they depend on is lent."""
        made = cls(folder / "venv", folder / "work")
        made.work.mkdir()
        run(sys.executable, "-m", "venv", "--without-pip", made.folder, cwd=folder)
        for source in sources:
            build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder / "dist")
            run(*build, cwd=source)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", made.folder / "bin" / "python")
        run(*pip, "install", "--quiet", "--no-deps", "--no-index", *(folder / "dist").iterdir(), cwd=folder)
        made.lend(folder / "lent")
        return made

    def lend(self, folder: Path) -> None:
        """Let it use the packages of this environment, without our own checkout."""
        folder.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if not path.name.startswith("tasker") and path.suffix != ".pth":
                (folder / path.name).symlink_to(path)
        (self.site / "lent.pth").write_text(f"{folder}\n")

    @property
    def site(self) -> Path:
        """Where its packages are."""
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder), "platbase": str(self.folder)}))

    @property
    def distributions(self) -> set[str]:
        """What was installed, by the names of the wheels."""
        return {path.name.split("-")[0] for path in self.site.glob("*.dist-info")}

    def __call__(self, program: str, *arguments: str | Path) -> str:
        return run(self.folder / "bin" / program, *arguments, cwd=self.work)
