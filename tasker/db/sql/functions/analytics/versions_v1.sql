-- Statistics of each version of a template. Of each version the newest ended tasks are read by an index:
-- complete ones and others, each up to a limit.
-- p_args: {namespace, template, tasks}
-- Returns: {versions: null if no such template is registered, else [{version, registered_at, changed_at: when
--   other content was registered under it, steps: number with which its tasks begin, executions, errors,
--   mean_seconds, max_seconds, first_at, last_at: of those tasks, by their ends}]} in the order of
--   registration
create or replace function tasker.versions_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
  select jsonb_build_object('versions', jsonb_agg(jsonb_build_object('version', nt.version,
    'registered_at', nt.created_at, 'changed_at', nt.updated_at,
    'steps', t.static_count, 'executions', e.executions, 'errors', e.errors,
    'mean_seconds', round(coalesce(e.mean, 0), 4),
    'max_seconds', round(coalesce(e.max, 0), 4), 'first_at', e.first_at, 'last_at', e.last_at)
  order by nt.created_at, nt.named_task_uuid))
  from tasker.task_namespaces ns
  join tasker.named_tasks nt on nt.namespace_id = ns.namespace_id
  join tasker.templates t on t.template_id = nt.template_id
  cross join lateral (
    select count(*) as executions, count(*) filter (where r.troubled) as errors,
      avg(r.seconds)::numeric as mean, max(r.seconds)::numeric as max,
      min(r.completed_at) as first_at, max(r.completed_at) as last_at
    from (
      select x.troubled, x.completed_at, extract(epoch from x.completed_at - x.created_at) as seconds
      from (values (false), (true)) as ended (badly)
      cross join lateral (
        select k.troubled, k.completed_at, k.created_at from tasker.tasks k
        where k.named_task_uuid = nt.named_task_uuid and k.troubled = ended.badly and k.complete
        order by k.completed_at desc limit tasker.required(p_args, 'tasks')::int) x
    ) r
  ) e
  where ns.name = p_args->>'namespace' and nt.name = p_args->>'template'
$$;
