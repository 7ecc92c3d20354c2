"""A Vault and an AWS Secrets Manager on loopback, and a program in place of `sops`."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Reply = tuple[int, Any]


@dataclass
class SecretServices:
    """`values` are the secrets by name. Vault takes the tokens in `tokens`; a login with `role` gives the next one."""

    url: str = ""
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=lambda: {"token-of-vault"})
    role: tuple[str, str] = ("role-4711", "secret-id-0815")
    logins: int = 0
    lease: int = 3600
    requests: list[tuple[str, str]] = field(default_factory=list)
    broken: int = 0
    """The status of every answer, if it is not 0."""

    def answer(self, method: str, path: str, headers: dict[str, str], body: str) -> Reply:
        """Status and body of an answer."""
        self.requests.append((method, path))
        if self.broken:
            return self.broken, "no JSON here"
        if "x-amz-target" in headers:
            return self._aws(headers, json.loads(body))
        if path == "/v1/auth/approle/login":
            return self._login(json.loads(body))
        if headers.get("x-vault-token") not in self.tokens:
            return 403, {"errors": ["permission denied"]}
        name = path.removeprefix("/v1/secret/data/")
        if name not in self.values:
            return 404, {"errors": []}
        deleted = self.values[name].get("deletion_time", "")
        return 200, {"data": {"data": self.values[name], "metadata": {"version": 1, "deletion_time": deleted}}}

    def _login(self, given: dict[str, str]) -> Reply:
        if (given.get("role_id"), given.get("secret_id")) != self.role:
            return 400, {"errors": ["invalid role or secret ID"]}
        self.logins += 1
        self.tokens = {f"token-of-login-{self.logins}"}
        return 200, {"auth": {"client_token": f"token-of-login-{self.logins}", "lease_duration": self.lease}}

    def _aws(self, headers: dict[str, str], given: dict[str, str]) -> Reply:
        assert headers["x-amz-target"] == "secretsmanager.GetSecretValue"
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=")
        name = given["SecretId"]
        if name == "binary":
            return 200, {"Name": name, "SecretBinary": base64.b64encode(b"x").decode()}
        if name not in self.values:
            return 400, {"__type": "ResourceNotFoundException", "Message": "no such secret"}
        return 200, {"Name": name, "SecretString": json.dumps(self.values[name])}


@contextmanager
def secret_services() -> Iterator[SecretServices]:
    """Both services, until the end of the block."""
    services = SecretServices()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {key.lower(): value for key, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0))).decode()
            status, answer = services.answer(self.command, self.path, headers, body)
            content = json.dumps(answer).encode() if not isinstance(answer, str) else answer.encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        services.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield services
        finally:
            server.shutdown()
            thread.join()


SOPS = f"""#!{sys.executable}
import base64, os, sys, time
from pathlib import Path
option, form, json, file = sys.argv[1:]
assert (option, form, json) == ("--decrypt", "--output-type", "json"), sys.argv
content = Path(file).read_text()
if content == "hang":
    time.sleep(60)
if content == "broken":
    sys.exit("Failed to get the data key required to decrypt the SOPS file.")
with Path(file + ".calls").open("a") as calls:
    calls.write("x")
print(base64.b64decode(content).decode())
"""


def write_sops(folder: Path) -> Path:
    """A program that takes what `sops` takes; its files are base64 of JSON."""
    program = folder / "sops"
    program.write_text(SOPS, encoding="utf-8")
    program.chmod(0o755)
    return program


def encrypt(file: Path, values: dict[str, Any]) -> None:
    """Write a file that the program decrypts."""
    file.write_text(base64.b64encode(json.dumps(values).encode()).decode(), encoding="utf-8")
