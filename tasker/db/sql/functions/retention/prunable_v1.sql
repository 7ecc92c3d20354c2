-- Which finished tasks are older than a rule allows, by template: where prune_v1 may begin. The rule that
-- names the template counts above the one that names its namespace, and that above the one that names
-- neither. Tasks that ended otherwise than `complete` have limits of their own. Whoever waited for a task
-- must be able to read it, so none that ended within `least_ms` is named. Reads one row of each template,
-- with a count so many of its newest.
-- p_args: {rules: [{namespace, template, completed_days, failed_days, completed_count, failed_count,
-- pending_days}] (null or missing: every one; no limit), least_ms}
-- Answer: {targets: [{named_task_uuid, namespace, template, version, failed, before, pending_before}]}
create or replace function tasker.prunable_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_bitmapscan to off
set jit to off
as $$
  with kinds as (
    select nt.named_task_uuid, ns.name as namespace, nt.name as template, nt.version, k.failed,
      k.days, k.count,
      tasker.now() - (r.rule->>'pending_days')::double precision * interval '1 day' as pending_before
    from tasker.named_tasks nt join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id
    cross join lateral (select j.rule from jsonb_array_elements(p_args->'rules') with ordinality j (rule, n)
      where coalesce(j.rule->>'namespace', ns.name) = ns.name
        and coalesce(j.rule->>'template', nt.name) = nt.name
      order by j.rule->>'template' is null, j.rule->>'namespace' is null, j.n limit 1) r
    cross join lateral (values
      (false, (r.rule->>'completed_days')::double precision, (r.rule->>'completed_count')::int),
      (true, (r.rule->>'failed_days')::double precision,
        (r.rule->>'failed_count')::int)) k (failed, days, count)
  ), limits as (
    select k.*, least(o.before, tasker.now() - tasker.ms((p_args->>'least_ms')::numeric)) as before
    from kinds k cross join lateral (select greatest(
      tasker.now() - k.days * interval '1 day',
      (select t.completed_at from tasker.tasks t
        where k.count is not null and t.complete and t.named_task_uuid = k.named_task_uuid
          and t.troubled = k.failed
        order by t.completed_at desc limit 1 offset k.count - 1)) as before) o
    where o.before is not null
  )
  select jsonb_build_object(
    'targets', coalesce(jsonb_agg(jsonb_build_object('named_task_uuid', l.named_task_uuid,
    'namespace', l.namespace, 'template', l.template, 'version', l.version, 'failed', l.failed,
    'before', l.before, 'pending_before', l.pending_before) order by l.namespace, l.template,
      tasker.version_order(l.version) collate "C", l.version collate "C", l.failed), '[]'))
  from limits l cross join lateral (
    -- The limit keeps the planner from a join that reads every finished task.
    select from tasker.tasks t
    where t.complete and t.named_task_uuid = l.named_task_uuid and t.troubled = l.failed
      and t.completed_at < l.before
    limit 1) f
$$;

-- How much prune_v1 would delete of a slice of the finished tasks of a template, the oldest first. What ended
-- at one moment is in one slice.
-- p_args: {named_task_uuid, failed, before, pending_before (as of prune_v1), slice (tasks), after (when the
-- last of the slice before ended)}
-- Answer: {tasks, steps: how many would be deleted, kept: how many tasks of the slice would not, after: where
-- the next slice begins, null: there is none}
create or replace function tasker.count_prunable_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_bitmapscan to off
set jit to off
as $$
  with ended as (
    select t.completed_at, t.total,
      tasker.is_kept(t.task_uuid, (p_args->>'pending_before')::timestamptz) as is_kept
    from tasker.tasks t
    where t.complete and t.named_task_uuid = (p_args->>'named_task_uuid')::uuid
      and t.troubled = (p_args->>'failed')::boolean
      and t.completed_at < (p_args->>'before')::timestamptz
      and t.completed_at > coalesce((p_args->>'after')::timestamptz, '-infinity')
    order by t.completed_at fetch first (tasker.required(p_args, 'slice')::int) rows with ties)
  select jsonb_build_object('tasks', count(*) filter (where not e.is_kept),
    'steps', coalesce(sum(e.total) filter (where not e.is_kept), 0),
    'kept', count(*) filter (where e.is_kept),
    'after', case when count(*) >= (p_args->>'slice')::int then max(e.completed_at) end)
  from ended e
$$;

-- True if a finished task is kept whatever its age: it has a pending dead letter that is not from before
-- `p_pending_before` (null: of any age), an open replay includes it, a task that it started is open, or the
-- task that started it may run again: its handler would not find the child, and start another one.
create or replace function tasker.is_kept(p_task uuid, p_pending_before timestamptz)
returns boolean language sql stable as $$
  select exists (select from tasker.tasks_dlq e where e.task_uuid = p_task and e.resolution_status = 'pending'
      and (p_pending_before is null or e.dlq_timestamp >= p_pending_before))
    or exists (select from tasker.dlq_replay_items i
      join tasker.dlq_replays r on r.replay_uuid = i.replay_uuid
      where i.task_uuid = p_task and i.outcome is null and r.finished_at is null)
    or exists (select from tasker.task_links l join tasker.tasks t on t.task_uuid = l.child_uuid
      where l.parent_task = p_task and not t.complete)
    or exists (select from tasker.task_links l join tasker.tasks t on t.task_uuid = l.parent_task
      where l.child_uuid = p_task and t.state <> 'complete')
$$;
