"""Secrets of AWS Secrets Manager."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from tasker.errors import ConfigurationError
from tasker.secrets import Secret
from tasker_secrets.settings import Clock, ProviderSettings, utc_now

MISSING = ("ResourceNotFoundException", "AccessDeniedException", "DecryptionFailure", "ValidationException")

KEYS = "region profile endpoint_url"


class AwsProvider:
    """Secrets by name or ARN: `aws:shop/orders#password`. Credentials are found as by every client of AWS."""

    def __init__(self, settings: Mapping[str, Any], now: Clock = utc_now) -> None:
        self._settings, self._now = ProviderSettings("aws", settings, KEYS), now
        self._lock = threading.Lock()
        self._client: Any = None

    def get(self, name: str) -> Secret:
        """Return the current version. Raises `ConfigurationError`, or an error of botocore if nothing answers."""
        with self._lock:  # making a client is not thread-safe
            self._client = self._client or self._made()
        from botocore.exceptions import ClientError

        try:
            answer = self._client.get_secret_value(SecretId=name)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in MISSING:
                raise ConfigurationError(f"AWS has no secret {name!r} for this process: {code}") from None
            raise
        value = answer.get("SecretString")
        if value is None:
            raise ConfigurationError(f"the secret {name!r} is binary: expected a text")
        return Secret(value, self._settings.expires_at(self._now()))

    def _made(self) -> Any:
        try:
            from botocore.config import Config
            from botocore.exceptions import NoRegionError, ProfileNotFound
            from botocore.session import Session
        except ImportError:
            raise self._settings.error("botocore is not installed", "pip install 'tasker-engine[aws]'") from None
        log = logging.getLogger("botocore")
        log.setLevel(max(log.level, logging.INFO))  # at DEBUG it logs the responses, which hold the secrets
        timeout = self._settings.timeout
        try:
            return Session(profile=self._settings.text("profile")).create_client(
                "secretsmanager",
                region_name=self._settings.text("region"),
                endpoint_url=self._settings.text("endpoint_url"),
                config=Config(connect_timeout=timeout, read_timeout=timeout, retries={"total_max_attempts": 2}),
            )
        except NoRegionError:
            raise self._settings.error("no region", 'write region = "...", or set AWS_REGION') from None
        except ProfileNotFound as error:
            raise self._settings.error(str(error)) from None
