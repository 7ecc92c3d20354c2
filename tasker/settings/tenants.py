"""`tenants`: quotas of tenants."""

from __future__ import annotations

from tasker.settings.table import Table, named_tables, several, table, whole


class TenantQuota(Table):
    """Quota of a tenant."""

    max_open_tasks: int = whole(
        0, 0, 10_000_000, "Tasks of a tenant that have not ended; a submission beyond it is refused. 0: unlimited."
    )
    max_submits_per_minute: int = whole(
        0, 0, 10_000_000, "Tasks of a tenant that are submitted in a minute; beyond it 429. 0: unlimited."
    )


class Tenants(Table):
    """Quotas of tenants: `[tenants.NAME]` is that of one tenant, whose settings override those of `[tenants.default]`."""

    named = TenantQuota

    labelled: tuple[str, ...] = several(
        (), "Tenants that metrics name; all others are counted together as `other`."
    )
    default: TenantQuota = table(TenantQuota)

    def quota(self, tenant: str) -> TenantQuota:
        """Return the quota of a tenant."""
        own = named_tables(self).get(tenant)
        return self.default if own is None else TenantQuota(**{**vars(self.default), **vars(own)})

    def label(self, tenant: str) -> str:
        """Return the name of a tenant in metrics."""
        return tenant if tenant in self.labelled else "other"
