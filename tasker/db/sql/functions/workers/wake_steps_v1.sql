-- Wakes the sleeping workers that may take these steps, each by its identifier: one that has refused a step
-- would only take its message again. Must run in a transaction of its own, after the moment at which the
-- steps could be claimed, as wake_v1 (rule 7).
-- Returns: the number of workers.
create or replace function tasker.wake_steps_v1(p_steps uuid[]) returns int
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
begin
  return (
    with waiting as materialized (
      select distinct ns.name, s.template_id || ':' || s.ordinal as key
      from tasker.workflow_steps s join tasker.task_namespaces ns using (namespace_id)
      where s.workflow_step_uuid = any (p_steps) and tasker.has_no_live_worker(s))
    select count(pg_notify('tasker_work', w.worker_uuid::text)) from tasker.workers w
    where w.asleep and w.stopped_at is null and w.lease_until > tasker.now()
      and exists (select from waiting q where q.name = any (w.namespaces) and q.key <> all (w.unserved)));
end
$$;
