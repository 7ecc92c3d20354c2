-- Adds to the counters of repairs.
-- p_args: {kind: n, ...}.
create or replace function tasker.record_repairs_v1(p_args jsonb) returns jsonb
language sql volatile
set search_path to pg_catalog, pg_temp
as $$
  insert into tasker.repairs as r (kind, repaired, last_at)
  select k, n::bigint, tasker.now() from jsonb_each_text(p_args) as x (k, n) where n::bigint > 0 order by k
  on conflict (kind) do update set repaired = r.repaired + excluded.repaired, last_at = excluded.last_at
  returning '{}'::jsonb
$$;
