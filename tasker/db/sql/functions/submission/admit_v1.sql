-- Counts tasks that are about to be submitted against the limits of their client, template and tenants, and
-- against the quotas of open tasks: all of them, or none if one is exceeded. It is called in a transaction
-- of its own before the submission, so that nobody waits for a bucket while a submission, or the transaction
-- of a program, goes on. Only open tasks that are committed count: submissions at the same moment may exceed
-- a quota of open tasks by their number.
-- Locks: submission buckets, by kind and name.
-- p_args: {buckets: [{kind, name, tasks, per_minute}], open: [{tenant, tasks, most}]}
-- Returns: {} if they are admitted, otherwise {kind: client, template, tenant or open, name, limit, retry_ms
--   (absent: as soon as tasks of the tenant end)}
create or replace function tasker.admit_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_refused jsonb;
begin
  perform tasker.require_read_committed();
  select jsonb_build_object('kind', 'open', 'name', g.tenant, 'limit', g.most) into v_refused
  from jsonb_to_recordset(p_args->'open') as g (tenant text, tasks int, most int)
  where g.tasks + (select count(*) from (select from tasker.tasks t
    where t.tenant = g.tenant and not t.complete limit g.most) q) > g.most
  order by g.tenant limit 1;
  if v_refused is not null then
    return v_refused;
  end if;

  insert into tasker.submission_buckets (kind, name, full_at)
  select g.kind, g.name, v_now
  from jsonb_to_recordset(p_args->'buckets') as g (kind text, name text) order by g.kind, g.name
  on conflict (kind, name) do nothing;
  perform from tasker.submission_buckets b
  join jsonb_to_recordset(p_args->'buckets') as g (kind text, name text) using (kind, name)
  order by b.kind, b.name for update of b;

  -- a later statement: it sees what earlier holders of these locks have committed
  select jsonb_build_object('kind', g.kind, 'name', g.name, 'limit', g.per_minute,
    'retry_ms', ceil((greatest(0, extract(epoch from b.full_at - v_now)) * 1000
      + (g.tasks - g.per_minute) * 60000.0 / g.per_minute))) into v_refused
  from jsonb_to_recordset(p_args->'buckets') as g (kind text, name text, tasks int, per_minute int)
  join tasker.submission_buckets b using (kind, name)
  where greatest(0, extract(epoch from b.full_at - v_now)) * g.per_minute / 60.0 + g.tasks
    > g.per_minute + 1e-6
  order by 1 limit 1;
  if v_refused is not null then
    return v_refused;
  end if;

  update tasker.submission_buckets b
  set full_at = greatest(b.full_at, v_now) + g.tasks * interval '1 minute' / g.per_minute
  from jsonb_to_recordset(p_args->'buckets') as g (kind text, name text, tasks int, per_minute int)
  where b.kind = g.kind and b.name = g.name;
  return '{}';
end
$$;
