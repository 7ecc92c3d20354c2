"""`hooks`: signed requests of other systems that become events for steps that wait."""

from __future__ import annotations

from typing import Annotated, Literal

from tasker.settings.formats import HeaderName
from tasker.settings.table import Check, Table, choice, flag, refused, several, text, whole


def _reference(value: str) -> str:
    provider, separator, name = value.partition(":")
    if provider in ("env", "file") and separator and name:
        return value
    raise refused("Not a reference to a secret", "Write env:NAME or file:PATH")


HookSecret = Annotated[str, Check(_reference)]


class IncomingHook(Table):
    """Requests to `POST /v1/hooks/NAME`, which become events once their signature is verified."""

    namespace: str = text("", "Namespace whose steps can take the events; empty: `default`.", shortest=0)
    event: str = text("", "Name of the events, such as `payment.settled`; empty: the name of the hook.", shortest=0)
    key: str = text(
        "", "Place of the key in the body, such as `data.object.id`; empty: events without a key.", shortest=0
    )
    secrets: tuple[HookSecret, ...] = several(
        (),
        "References to the secret, `env:NAME` or `file:PATH`; two while it is exchanged. Without one, all are refused.",
    )
    signature: Literal["standard", "body", "timestamp"] = choice(
        "standard",
        "What is signed: `standard`: as Standard Webhooks, and as Tasker's own webhooks; `body`: the body alone, as "
        "GitHub; `timestamp`: a time and the body, as Stripe.",
    )
    header: HeaderName = text("webhook-signature", "Header with the signature.")
    prefix: str = text("", "Text before the signature in the header, such as `sha256=`; for `body`.", shortest=0)
    encoding: Literal["hex", "base64"] = choice("hex", "Encoding of the signature; for `body` and `timestamp`.")
    tolerance_seconds: int = whole(300, 1, 86_400, "Largest difference between the signed time and now.")
    dedupe_header: str = text(
        "", "Header whose value is the same when the request is repeated; `standard` uses `webhook-id`.", shortest=0
    )
    dedupe_path: str = text("", "Place of such a value in the body, such as `id`.", shortest=0)
    max_body_bytes: int = whole(262_144, 1024, 1_000_000, "Maximum size of a body; beyond it 400.")
    exclusive: bool = flag(False, "Only one waiting step takes an event.")
    keep_hours: int = whole(168, 1, 8760, "How long steps that wait later can take an event.")
