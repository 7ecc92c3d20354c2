"""Secrets of HashiCorp Vault or OpenBao: the key-value engine, version 2."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx

from tasker.errors import ConfigurationError
from tasker.secrets import Secret
from tasker_secrets.settings import Clock, ProviderSettings, utc_now

NO_LEASE = 10**9
"""Seconds that a token without a lease is used."""
RENEWED_AFTER = 0.8
"""Part of a lease after which there is a new login."""
KEYS = "address mount namespace token role_id secret_id approle ca"


class VaultProvider:
    """Secrets by path: `vault:shop/orders#password` is the field `password` of `shop/orders` in the mount."""

    def __init__(self, settings: Mapping[str, Any], now: Clock = utc_now) -> None:
        self._settings, self._now = ProviderSettings("vault", settings, KEYS), now
        self._login: tuple[Secret, datetime] | None = None
        self._lock = threading.Lock()
        self._mount = (self._settings.text("mount", "secret") or "").strip("/")
        address = httpx.URL(self._settings.text("address") or "")
        if address.scheme not in ("http", "https") or not address.host:
            raise self._settings.error("address: expected the URL of Vault", 'write address = "https://..."')
        if ("token" in settings) == ("role_id" in settings):
            raise self._settings.error("expected either `token`, or `role_id` and `secret_id`")
        ca, namespace = self._settings.text("ca"), self._settings.text("namespace")
        self._client = httpx.Client(
            base_url=address,
            headers={"x-vault-request": "true", **({"x-vault-namespace": namespace} if namespace else {})},
            verify=ssl.create_default_context(cafile=ca) if ca else True,
            timeout=self._settings.timeout,
            trust_env=False,  # no proxy and no .netrc of the environment
        )

    def get(self, name: str) -> Secret:
        """Return the newest version as JSON. Raises `ConfigurationError`, or an error of httpx if nothing answers."""
        path = f"/v1/{quote(self._mount)}/data/{quote(name.strip('/'))}"
        response = self._send(path, self._token())
        if response.status_code == 403 and self._login is not None:
            self._login = None  # the token was revoked
            response = self._send(path, self._token())
        if response.status_code == 404:
            raise ConfigurationError(f"Vault has no secret {name!r} in the mount {self._mount!r}")
        if response.status_code == 403:
            raise ConfigurationError(f"Vault refuses to read {name!r} in the mount {self._mount!r}: no permission")
        data = self._answer(response, f"reading {name!r}").get("data") or {}
        if not isinstance(data.get("data"), Mapping):
            message = f"{name!r} in the mount {self._mount!r} is not a secret of the key-value engine, version 2"
            raise ConfigurationError(message)
        return Secret(json.dumps(data["data"], ensure_ascii=False), self._expires_at(data))

    def _expires_at(self, data: Mapping[str, Any]) -> datetime | None:
        at = self._settings.expires_at(self._now())
        deleted = (data.get("metadata") or {}).get("deletion_time")
        times = [each for each in (at, datetime.fromisoformat(deleted) if deleted else None) if each is not None]
        return min(times, default=None)

    def _token(self) -> str:
        if (token := self._settings.text("token")) is not None:
            return token
        with self._lock:
            if self._login is None or self._login[1] <= self._now():
                self._login = self._logged_in()
            return self._login[0].reveal()

    def _logged_in(self) -> tuple[Secret, datetime]:
        role = {"role_id": self._settings.text("role_id"), "secret_id": self._settings.text("secret_id")}
        mount = (self._settings.text("approle", "approle") or "").strip("/")
        response = self._client.post(f"/v1/auth/{quote(mount)}/login", json={k: v for k, v in role.items() if v})
        if response.status_code in (400, 403):
            raise self._settings.error("Vault refuses the login with `role_id` and `secret_id`")
        auth = self._answer(response, "the login").get("auth") or {}
        if not isinstance(token := auth.get("client_token"), str):
            raise ConnectionError("Vault answered to the login without a token")
        seconds = float(auth.get("lease_duration") or 0) or NO_LEASE
        return Secret(token), self._now() + timedelta(seconds=seconds * RENEWED_AFTER)

    def _send(self, path: str, token: str) -> httpx.Response:
        return self._client.get(path, headers={"x-vault-token": token})

    def _answer(self, response: httpx.Response, what: str) -> dict[str, Any]:
        if not response.is_success:
            raise ConnectionError(f"Vault answered {response.status_code} to {what}")
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ConnectionError(f"Vault did not answer with a JSON object to {what}")
        return answer
