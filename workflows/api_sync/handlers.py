"""Contacts of an account, copied between two providers that allow so much at a time and so much per minute."""

from __future__ import annotations

from tasker.step_handler import depends_on, inputs, step_handler

Contacts = dict[str, list[str]]


@step_handler("api_sync.fetch_contacts")
@inputs("account", "contacts")
def fetch_contacts(account: str, contacts: int) -> Contacts:
    return {"contacts": [f"{account}-{number}" for number in range(contacts)]}


@step_handler("api_sync.upload_contacts")
@depends_on(fetched="fetch_contacts")
def upload_contacts(fetched: Contacts) -> dict[str, int]:
    return {"uploaded": len(fetched["contacts"])}


@step_handler("api_sync.confirm")
@inputs("account")
@depends_on(upload="upload_contacts")
def confirm(account: str, upload: dict[str, int]) -> dict[str, str]:
    return {"message": f"{upload['uploaded']} contacts of {account} are up to date"}
