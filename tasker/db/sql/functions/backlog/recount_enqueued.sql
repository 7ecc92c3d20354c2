-- Corrects the counters of enqueued steps by their difference to the rows of tasks under way; returns the
-- number of corrected namespaces. Waiting tasks have no enqueued steps and are not read. Rows and counters
-- are read in one statement: a write commits both together, so a concurrent write does not change the
-- difference. The namespaces are locked by the caller, so no other process corrects them at the same time.
create or replace function tasker.recount_enqueued(p_namespaces int[]) returns int
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_count int;
begin
  with found as (
    select s.namespace_id, count(*) as enqueued from tasker.tasks t
    join tasker.workflow_steps s
      on s.workflow_step_uuid between t.task_uuid and tasker.step_uuid(t.task_uuid, 16777215)
    where not t.complete and not t.waits and t.namespace_id = any (p_namespaces) and s.state = 'enqueued'
    group by s.namespace_id
  ), counted as (
    select c.namespace_id, sum(c.enqueued) as enqueued from tasker.enqueue_counters c
    where c.namespace_id = any (p_namespaces) group by c.namespace_id
  ), missing as materialized (
    select n as namespace_id, coalesce(f.enqueued, 0) - coalesce(c.enqueued, 0) as enqueued
    from unnest(p_namespaces) n left join found f on f.namespace_id = n
    left join counted c on c.namespace_id = n
    where coalesce(f.enqueued, 0) <> coalesce(c.enqueued, 0)
  )
  insert into tasker.enqueue_counters as c (namespace_id, shard, enqueued)
  select m.namespace_id, tasker.free_shard(m.namespace_id), m.enqueued from missing m
  on conflict (namespace_id, shard) do update set enqueued = c.enqueued + excluded.enqueued;
  get diagnostics v_count = row_count;
  return v_count;
end
$$;
