"""The providers `sops`, `vault` and `aws` against a program and servers on loopback."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tasker.errors import ConfigurationError
from tasker.known_secrets import KNOWN, KnownSecrets
from tasker.resources.registry import ResourceRegistry
from tasker.resources.tables import ResourceTables, table_problems
from tasker.secrets import SecretReference, Secrets, known_providers
from tasker_secrets.vault import VaultProvider
from tests.support.servers.secret_services import SecretServices, encrypt, secret_services, write_sops

NOW = datetime(2030, 1, 1, tzinfo=UTC)
VALUES = {"password": "canary-7f3-ü", "db": {"password": "nested-canary", "port": 5432}, "a.b": "dotted-canary"}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KnownSecrets.__slots__:
        monkeypatch.setattr(KNOWN, name, getattr(KnownSecrets(), name))


@pytest.fixture
def services() -> Iterator[SecretServices]:
    with secret_services() as running:
        running.values["shop/orders"] = dict(VALUES)
        yield running


@pytest.fixture
def tables(services: SecretServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Settings of each provider, with which `shop/orders` is read."""
    for name, value in {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "key-of-aws-4711"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/does/not/exist")
    monkeypatch.setenv("VAULT_TOKEN", "token-of-vault")
    (tmp_path / "shop").mkdir()
    encrypt(tmp_path / "shop" / "orders", VALUES)
    return {
        "sops": {"program": str(write_sops(tmp_path)), "folder": str(tmp_path)},
        "vault": {"address": services.url, "token": {"secret": "env:VAULT_TOKEN"}},
        "aws": {"region": "eu-central-1", "endpoint_url": services.url},
    }


Read = Callable[[str], str]


@pytest.fixture
def read(tables: dict[str, dict[str, Any]]) -> Read:
    secrets = Secrets(tables)
    return lambda text: secrets.get(SecretReference.parse(text)).reveal()


@pytest.fixture(params=["sops", "vault", "aws"])
def provider(request: pytest.FixtureRequest) -> str:
    if request.param == "aws":
        pytest.importorskip("botocore")
    return str(request.param)


def test_secret_providers_are_installed_beside_the_included_ones() -> None:
    assert {"sops", "vault", "aws"} <= {*known_providers()}


def test_provider_reads_a_field(provider: str, read: Read) -> None:
    fields = [read(f"{provider}:shop/orders#{name}") for name in ("password", "db.password", "db.port", "a.b")]
    assert fields == ["canary-7f3-ü", "nested-canary", "5432", "dotted-canary"]
    assert KNOWN.is_in("canary-7f3-ü")


@pytest.mark.parametrize("name", ["shop/nothing", "shop/orders#pasword", "shop/orders#db", "shop/orders#db.nothing"])
def test_missing_secret_is_an_error_without_a_value(provider: str, read: Read, name: str) -> None:
    with pytest.raises(ConfigurationError) as missing:
        read(f"{provider}:{name}")
    assert "canary" not in f"{missing.value} {missing.value.hint}"


@pytest.mark.parametrize(
    ("provider", "table", "message"),
    [
        ("vault", {}, "address"),
        ("vault", {"address": "vault:8200", "token": "x"}, "address"),
        ("vault", {"address": "https://vault"}, "either `token`, or `role_id`"),
        ("vault", {"address": "https://vault", "token": "x", "role_id": "y"}, "either `token`, or `role_id`"),
        ("vault", {"adress": "https://vault"}, "unknown key 'adress'"),
        ("vault", {"address": "https://vault", "token": {"secret": "sops:x"}}, "come from env or file"),
        ("sops", {"file": "x"}, "unknown key 'file'"),
        ("sops", {"timeout_seconds": 0}, "timeout_seconds: expected a number above 0"),
        ("sops", {"refresh_seconds": True}, "refresh_seconds: expected a number above 0"),
        ("sops", {"program": "/does/not/exist"}, "was not found"),
        ("aws", {"regions": "x"}, "unknown key 'regions'"),
    ],
)
def test_wrong_table_is_an_error_that_names_the_key(
    provider: str, table: dict[str, Any], message: str, tables: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    given = {"folder": str(tmp_path), **table} if provider == "sops" and "file" not in table else table
    with pytest.raises(ConfigurationError, match=message):
        Secrets({provider: given}).get(SecretReference(provider, "shop/orders"))


def test_table_of_a_provider_may_refer_to_included_providers_only() -> None:
    (problem,) = table_problems({"secrets": {"vault": {"token": {"secret": "sops:x"}}}})
    assert (problem.path, problem.issue) == ("secrets.vault.token", "Expected another provider")
    assert list(table_problems({"secrets": {"vault": {"token": {"secret": "file:x"}}}})) == []


# --- rotation ------------------------------------------------------------------------------------------------------


class Client:
    def __init__(self, key: Any) -> None:
        self.key = key.reveal()


def change(provider: str, services: SecretServices, folder: Path, value: str) -> None:
    services.values["shop/orders"]["password"] = value
    encrypt(folder / "shop" / "orders", {**VALUES, "password": value})


def registry(provider: str, tables: dict[str, dict[str, Any]], **options: Any) -> ResourceRegistry:
    table = {"kind": "python", "make": f"{__name__}:Client", "key": {"secret": f"{provider}:shop/orders#password"}}
    return ResourceRegistry(ResourceTables({"orders": table}, tables), **options)


def test_refused_secret_that_has_changed_gives_a_new_client(
    provider: str, tables: dict[str, dict[str, Any]], services: SecretServices, tmp_path: Path
) -> None:
    resources = registry(provider, tables)
    attempt = resources.for_attempt()
    assert attempt["orders"].key == VALUES["password"]
    assert attempt.renew() == []
    change(provider, services, tmp_path, "changed-canary")
    assert attempt.renew() == ["orders"]
    assert resources.for_attempt()["orders"].key == "changed-canary"


def test_secret_is_read_again_after_the_time_of_its_provider(
    provider: str, tables: dict[str, dict[str, Any]], services: SecretServices, tmp_path: Path
) -> None:
    tables[provider]["refresh_seconds"] = 3600
    later = datetime.now(UTC) + timedelta(minutes=59)
    resources = registry(provider, tables, now=lambda: later)
    assert resources.for_attempt()["orders"].key == VALUES["password"]
    change(provider, services, tmp_path, "changed-canary")
    assert resources.for_attempt()["orders"].key == VALUES["password"]
    later += timedelta(minutes=2)
    assert resources.for_attempt()["orders"].key == "changed-canary"


# --- one by one ----------------------------------------------------------------------------------------------------


def test_sops_decrypts_a_file_once_for_each_change(read: Read, tmp_path: Path) -> None:
    file = tmp_path / "shop" / "orders"
    for name in ("password", "db.password", "password"):
        read(f"sops:shop/orders#{name}")
    assert Path(f"{file}.calls").read_text() == "x"
    encrypt(file, {"password": "other"})
    os.utime(file, (1, 1))
    assert read("sops:shop/orders#password") == "other"
    assert Path(f"{file}.calls").read_text() == "xx"


def test_refusal_of_sops_is_shown(read: Read, tmp_path: Path) -> None:
    (tmp_path / "shop" / "orders").write_text("broken")
    with pytest.raises(ConfigurationError, match=r"exit code 1.*data key"):
        read("sops:shop/orders#password")


def test_hanging_sops_is_ended(tables: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "shop" / "orders").write_text("hang")
    tables["sops"]["timeout_seconds"] = 0.2
    with pytest.raises(TimeoutError, match=r"within 0\.2 seconds"):
        Secrets(tables).get(SecretReference("sops", "shop/orders"))


def with_role(tables: dict[str, dict[str, Any]], secret: str = "secret-id-0815") -> dict[str, Any]:
    return {"address": tables["vault"]["address"], "role_id": "role-4711", "secret_id": secret}


def test_vault_logs_in_with_a_role_once_for_each_lease(
    services: SecretServices, tables: dict[str, dict[str, Any]]
) -> None:
    now = NOW
    vault = VaultProvider(with_role(tables), now=lambda: now)
    assert "canary" in vault.get("shop/orders").reveal()
    now += timedelta(seconds=0.79 * services.lease)
    vault.get("shop/orders")
    assert services.logins == 1
    now += timedelta(seconds=0.02 * services.lease)
    vault.get("shop/orders")
    assert services.logins == 2
    assert KNOWN.is_in("token-of-login-2")


def test_revoked_token_of_a_role_is_replaced_at_once(
    services: SecretServices, tables: dict[str, dict[str, Any]]
) -> None:
    vault = VaultProvider(with_role(tables))
    vault.get("shop/orders")
    services.tokens.clear()
    vault.get("shop/orders")
    assert services.logins == 2


def test_wrong_role_is_refused(tables: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(ConfigurationError, match="refuses the login"):
        VaultProvider(with_role(tables, "wrong")).get("shop/orders")


def test_token_is_read_again_for_each_request(
    services: SecretServices, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.tokens = {"renewed-token"}
    with pytest.raises(ConfigurationError, match="no permission"):
        read("vault:shop/orders#password")
    monkeypatch.setenv("VAULT_TOKEN", "renewed-token")
    assert read("vault:shop/orders#password") == VALUES["password"]


def test_vault_says_until_when_a_version_exists(services: SecretServices, tables: dict[str, dict[str, Any]]) -> None:
    services.values["shop/orders"]["deletion_time"] = "2030-01-01T01:00:00.945319214Z"
    vault = VaultProvider(with_role(tables), now=lambda: NOW)
    assert vault.get("shop/orders").expires_at == datetime(2030, 1, 1, 1, 0, 0, 945319, tzinfo=UTC)


@pytest.mark.parametrize("status", [200, 500, 503])
def test_answer_that_is_not_vaults_may_be_tried_again(services: SecretServices, read: Read, status: int) -> None:
    services.broken = status
    with pytest.raises(ConnectionError, match="Vault"):
        read("vault:shop/orders#password")


def test_absent_vault_may_be_tried_again(services: SecretServices, tables: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(httpx.ConnectError):
        VaultProvider({"address": "http://127.0.0.1:9", "token": "x"}).get("shop/orders")


def test_binary_secret_of_aws_is_refused(read: Read) -> None:
    pytest.importorskip("botocore")
    with pytest.raises(ConfigurationError, match="is binary"):
        read("aws:binary")
