"""`common.approvals`: signed links with which persons decide."""

from __future__ import annotations

from tasker.settings.formats import LinkKey
from tasker.settings.table import Table, several, text, whole


class Approvals(Table):
    """Signed links with which persons decide without signing in."""

    link_keys: tuple[LinkKey, ...] = several(
        (),
        "Secrets that sign links, of 32 characters at least: the first one signs, all of them verify. None: no links.",
        advice="To change one, put the new one first, and take the old one out when its links have expired.",
    )
    link_hours: int = whole(72, 1, 8760, "Lifetime of a link; it ends with the approval in any case.")
    url: str = text("", "Address of the server in links, such as https://tasker.example.com.", shortest=0)
