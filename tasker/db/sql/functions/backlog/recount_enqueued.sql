-- Corrects the counters of enqueued steps by what they differ from the rows of open tasks; how many namespaces had to
-- be. Rows and counters are read in one statement: a write commits both, so whoever writes meanwhile changes no
-- difference. The namespaces are locked, so nobody else corrects them.
create or replace function tasker.recount_enqueued(p_namespaces int[]) returns int
language plpgsql as $$
declare
  v_count int;
begin
  with found as (
    select s.namespace_id, count(*) as enqueued from tasker.tasks t
    join tasker.workflow_steps s on s.task_uuid = t.task_uuid
    where not t.complete and s.state = 'enqueued' group by s.namespace_id
  ), counted as (
    select c.namespace_id, sum(c.enqueued) as enqueued from tasker.enqueue_counters c
    where c.namespace_id = any (p_namespaces) group by c.namespace_id
  ), missing as materialized (
    select n as namespace_id, coalesce(f.enqueued, 0) - coalesce(c.enqueued, 0) as enqueued
    from unnest(p_namespaces) n left join found f on f.namespace_id = n left join counted c on c.namespace_id = n
    where coalesce(f.enqueued, 0) <> coalesce(c.enqueued, 0)
  )
  insert into tasker.enqueue_counters as c (namespace_id, shard, enqueued)
  select m.namespace_id, tasker.free_shard(m.namespace_id), m.enqueued from missing m
  on conflict (namespace_id, shard) do update set enqueued = c.enqueued + excluded.enqueued;
  get diagnostics v_count = row_count;
  return v_count;
end
$$;
