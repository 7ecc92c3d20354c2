-- Wakes sleeping workers of these namespaces. Must run in a transaction of its own *after* the commit that made the
-- work visible: a worker marks itself asleep, commits and only then looks again (rule 7).
create or replace function tasker.wake_v1(p_namespaces text[]) returns int
language sql volatile
set search_path to pg_catalog, pg_temp
as $$
  select count(pg_notify('tasker_work', w.worker_uuid::text))::int from tasker.workers w
  where w.asleep and w.stopped_at is null and w.lease_until > tasker.now() and w.namespaces && p_namespaces
$$;
