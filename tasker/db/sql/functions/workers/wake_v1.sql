-- Announces work to the namespaces in which a worker sleeps, one notification for all its sleepers. Must run
-- in a transaction of its own *after* the commit that made the work visible: a worker marks itself asleep,
-- commits and only then polls again (rule 7).
-- Returns: the number of namespaces.
create or replace function tasker.wake_v1(p_namespaces text[]) returns int
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
begin
  return (select count(pg_notify('tasker_work', '@' || n.name)) from unnest(p_namespaces) as n (name)
    where exists (select from tasker.workers w
      where w.asleep and w.stopped_at is null and w.lease_until > tasker.now()
        and n.name = any (w.namespaces)));
end
$$;
