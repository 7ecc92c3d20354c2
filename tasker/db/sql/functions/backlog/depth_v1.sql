-- The amount of ready work of a namespace: {enqueued, held, paused (in addition to held), taken: steps that
-- ever left its queue}. Counts at most p_args.limit backlogged steps. An unknown namespace has zeros.
-- p_args: {namespace, limit}
create or replace function tasker.depth_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('enqueued', d.enqueued, 'taken', d.taken,
    'held', case when d.stopped then 0 else d.free end,
    'paused', d.marked + case when d.stopped then d.free else 0 end)
  from (
    select coalesce(sum(c.enqueued), 0) as enqueued, coalesce(sum(c.taken), 0) as taken,
      tasker.namespace_is_paused(ns.id) as stopped,
      (select count(*) from (select from tasker.ready_backlog b where b.namespace_id = ns.id and not b.paused
        limit tasker.required(p_args, 'limit')::int) h) as free,
      (select count(*) from (select from tasker.ready_backlog b where b.namespace_id = ns.id and b.paused
        limit tasker.required(p_args, 'limit')::int) h) as marked
    from (select (select n.namespace_id from tasker.task_namespaces n
        where n.name = p_args->>'namespace') as id) ns
    left join tasker.enqueue_counters c on c.namespace_id = ns.id group by ns.id) d
$$;
