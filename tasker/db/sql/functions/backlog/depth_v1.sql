-- How much ready work a namespace has: {enqueued, held, paused (of the held), taken: steps that ever left its queue}.
-- Counts at most p_args.limit held steps. p_args: {namespace, limit}. An unknown namespace has none.
create or replace function tasker.depth_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('enqueued', coalesce(sum(c.enqueued), 0), 'taken', coalesce(sum(c.taken), 0),
    'held', (select count(*) from (select from tasker.ready_backlog b where b.namespace_id = ns.id and not b.paused
      limit coalesce((p_args->>'limit')::int, 100000)) h),
    'paused', (select count(*) from (select from tasker.ready_backlog b where b.namespace_id = ns.id and b.paused
      limit coalesce((p_args->>'limit')::int, 100000)) h))
  from (select (select n.namespace_id from tasker.task_namespaces n where n.name = p_args->>'namespace') as id) ns
  left join tasker.enqueue_counters c on c.namespace_id = ns.id group by ns.id
$$;
