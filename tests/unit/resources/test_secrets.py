"""Secrets are read from their providers, shown nowhere, and found in texts in every form."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path
from urllib.parse import quote

import pytest

from tasker.errors import ConfigurationError, NotStorable
from tasker.json_values import encode
from tasker.known_secrets import KNOWN, REDACTED, KnownSecrets
from tasker.redaction import redacted
from tasker.resources.tables import table_problems
from tasker.secrets import Secret, SecretReference, Secrets

CANARY = 'canary-7f"3/ü+x'


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets of one test are unknown to the next."""
    for name in KnownSecrets.__slots__:
        monkeypatch.setattr(KNOWN, name, getattr(KnownSecrets(), name))


def get(text: str) -> str:
    return Secrets().get(SecretReference.parse(text)).reveal()


def test_env_reads_a_variable_or_the_file_that_it_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CARD_KEY", "from-variable")
    assert get("env:CARD_KEY") == "from-variable"
    (tmp_path / "key").write_text("from-file\n", encoding="utf-8")
    monkeypatch.setenv("CARD_KEY_FILE", str(tmp_path / "key"))
    assert get("env:CARD_KEY") == "from-file"


def test_file_reads_a_file_or_a_field_of_its_object(tmp_path: Path) -> None:
    (tmp_path / "db").write_text(json.dumps({"user": "app", "port": 5432}), encoding="utf-8")
    assert get(f"file:{tmp_path / 'db'}#user") == "app"
    assert get(f"file:{tmp_path / 'db'}#port") == "5432"
    with pytest.raises(ConfigurationError, match="has no field 'pasword'"):
        get(f"file:{tmp_path / 'db'}#pasword")


@pytest.mark.parametrize("text", ["CARD_KEY", "env:", ":CARD_KEY", ""])
def test_a_malformed_reference_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="invalid reference"):
        SecretReference.parse(text)


@pytest.mark.parametrize("text", ["env:NOT_SET_ANYWHERE", "file:/does/not/exist", "vauld:x"])
def test_a_secret_that_cannot_be_read_is_an_error_without_a_value(text: str) -> None:
    with pytest.raises(ConfigurationError):
        get(text)


def test_a_secret_is_shown_nowhere() -> None:
    secret = Secret(CANARY)
    shown = f"{secret} {secret!r} {[secret]}"
    assert CANARY not in shown
    assert secret.reveal() == CANARY
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)


FORMS = {
    "as it is": CANARY,
    "json": json.dumps(CANARY),
    "json of utf-8": json.dumps(CANARY, ensure_ascii=False),
    "url": quote(CANARY, safe=""),
    "base64": base64.b64encode(CANARY.encode()).decode(),
    "base64 of a longer text": base64.b64encode(f"app:{CANARY}:x".encode()).decode(),
    "base64 one further": base64.b64encode(f"user:{CANARY}".encode()).decode(),
    "base64 for urls": base64.urlsafe_b64encode(CANARY.encode()).decode(),
    "hexadecimal": CANARY.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_secret_is_redacted_and_refused(form: str) -> None:
    text = f"refused <{form}> by the server"
    assert KNOWN.redact(text) == text
    assert encode({"a": text})
    Secret(CANARY)
    assert form.strip('"') not in KNOWN.redact(text)
    assert KNOWN.redact({"a": [(text,)], form: 1}) != {"a": [(text,)], form: 1}
    with pytest.raises(NotStorable) as refused:
        encode({"rows": [1, {"key": text}]})
    assert (refused.value.path, refused.value.error_type) == ("$.rows[1].key", "result_holds_secret")
    assert form.strip('"') not in str(refused.value)


def test_a_secret_that_is_a_key_is_refused_without_naming_it() -> None:
    Secret(CANARY)
    with pytest.raises(NotStorable) as refused:
        encode({"of": {CANARY: 1}})
    assert refused.value.path == f"$.of.{REDACTED}"


def test_short_secrets_are_not_searched_for() -> None:
    Secret("abcde")
    assert not KNOWN
    Secret("")
    assert encode({"a": "abcde"})


def test_a_reference_is_shown_and_a_value_is_not() -> None:
    tables = {"resources": {"orders": {"url": {"secret": "env:ORDERS_URL"}, "key": "plain"}}}
    shown, paths = redacted(tables)
    assert shown["resources"]["orders"]["url"] == {"secret": "env:ORDERS_URL"}
    assert (shown["resources"]["orders"]["key"], paths) == (REDACTED, ["resources.orders.key"])


@pytest.mark.parametrize(
    ("table", "path", "issue"),
    [
        ({"kind": "pyton"}, "resources.a.kind", "Expected the kind"),
        ({}, "resources.a.kind", "Expected the kind"),
        ({"kind": "python", "key": {"secret": "env"}}, "resources.a.key", "invalid reference"),
        ({"kind": "python", "keys": [{"secret": "nope:X"}]}, "resources.a.keys[0]", "Unknown provider"),
        ({"kind": "python", "key": {"secret": "env:X", "field": "y"}}, "resources.a.key", "one key"),
        ("text", "resources.a", "Expected a table"),
    ],
)
def test_a_wrong_table_is_reported_with_its_path(table: object, path: str, issue: str) -> None:
    (problem,) = table_problems({"resources": {"a": table}})
    assert problem.path == path
    assert issue in problem.issue
