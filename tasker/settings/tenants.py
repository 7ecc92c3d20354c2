"""`tenants`: quotas of tenants."""

from __future__ import annotations

from collections.abc import Mapping

from tasker.settings.table import Table, flag, whole

DEFAULT = "default"
"""Name of the table whose settings apply to tenants that do not set them."""


class TenantQuota(Table):
    """Quota of a tenant. The settings of `[tenants.default]` apply to every tenant that does not set them."""

    max_open_tasks: int = whole(
        0, 0, 10_000_000, "Open tasks of the tenant; further submissions get 429. 0: unlimited."
    )
    max_submits_per_minute: int = whole(
        0, 0, 10_000_000, "Tasks of the tenant that may be submitted in a minute; then 429. 0: unlimited."
    )
    labelled: bool = flag(False, "Name the tenant in metrics; all others are counted together as `other`.")


def quota_of(tenants: Mapping[str, TenantQuota], tenant: str) -> TenantQuota:
    """Return the quota of a tenant."""
    default, own = (vars(tenants[name]) if name in tenants else {} for name in (DEFAULT, tenant))
    return TenantQuota(**{**default, **own})


def label_of(tenants: Mapping[str, TenantQuota], tenant: str) -> str:
    """Return the name of a tenant in metrics."""
    return tenant if tenant in tenants and tenant != DEFAULT and tenants[tenant].labelled else "other"
