"""What `make check` says about secrets in files, and about advisories, known and not to be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasker.server.auth.verification_keys import generate
from tools import audit


def package(**given: Any) -> dict[str, Any]:
    return {"name": "shaky", "version": "1.0", **given}


def test_a_secret_in_a_file_is_named_by_its_place_and_not_printed(tmp_path: Path) -> None:
    private, public = generate(2048)
    (tmp_path / "harmless.py").write_text(f"KEY = '''{public}'''\n")
    (tmp_path / "settings.py").write_text(f"# of the issuer\nKEY = '''{private}'''\n")

    (found,) = audit.secrets(tmp_path)

    assert "settings.py:2: " in found
    assert private.splitlines()[3] not in found


def test_an_advisory_names_the_package_and_what_mends_it() -> None:
    fixed = {"id": "CVE-1", "fix_versions": ["1.1", "2.0"]}
    packages = [package(vulns=[fixed, {"id": "CVE-2", "fix_versions": []}]), package(name="sound", vulns=[])]

    assert list(audit.complaints(packages)) == [
        "shaky 1.0 has CVE-1; mended by 1.1 or 2.0",
        "shaky 1.0 has CVE-2; mended by no release yet",
    ]


def test_an_index_that_knows_no_package_has_not_found_them_sound() -> None:
    with pytest.raises(audit.NotAsked):
        list(audit.complaints([package(skip_reason="not found")]))


def test_findings_make_the_check_red_and_no_network_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "ADVISORIES", "http://127.0.0.1:1/{}")
    monkeypatch.setattr(audit.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(audit, "secrets", lambda folder: [])

    assert audit.main() == 0
    assert capsys.readouterr().out == "KNOWN VULNERABILITIES NOT LOOKED FOR: no network (ConnectError)\n"

    monkeypatch.setattr(audit, "secrets", lambda folder: ["key.pem:1: a private key"])
    assert audit.main() == 1
    assert "key.pem:1: a private key" in capsys.readouterr().out


def test_what_was_found_sound_is_asked_again_after_a_day_and_when_something_else_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(audit, "_require_answers", lambda: None)
    monkeypatch.setattr(audit, "_audited", lambda: asked.append("asked") or [package(vulns=[])])
    stamp = tmp_path / "stamp"

    audit.advisories(stamp)
    audit.advisories(stamp)
    assert len(asked) == 1

    monkeypatch.setattr(audit, "time", lambda: stamp.stat().st_mtime + audit.FRESH_SECONDS + 1)
    audit.advisories(stamp)
    assert len(asked) == 2

    stamp.write_text("other packages")
    monkeypatch.undo()
    monkeypatch.setattr(audit, "_require_answers", lambda: None)
    monkeypatch.setattr(audit, "_audited", lambda: [package(vulns=[{"id": "CVE-1", "fix_versions": []}])])
    assert audit.advisories(stamp)
    assert stamp.read_text() == "other packages"
