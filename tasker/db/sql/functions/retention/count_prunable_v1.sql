-- How much prune_v1 would delete of a slice of the finished tasks of a template, the oldest first. What ended at one moment is
-- in one slice.
-- p_args: {named_task_uuid, failed, before, pending_before (as of prune_v1), slice (tasks), after (when the last of the slice
-- before ended)}
-- Answer: {tasks, steps: how many would be deleted, kept: how many tasks of the slice would not, after: where the next slice
-- begins, null: there is none}
create or replace function tasker.count_prunable_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_bitmapscan to off
set jit to off
as $$
  with ended as (
    select t.completed_at, t.total, tasker.is_kept(t.task_uuid, (p_args->>'pending_before')::timestamptz) as is_kept
    from tasker.tasks t
    where t.complete and t.named_task_uuid = (p_args->>'named_task_uuid')::uuid and t.troubled = (p_args->>'failed')::boolean
      and t.completed_at < (p_args->>'before')::timestamptz
      and t.completed_at > coalesce((p_args->>'after')::timestamptz, '-infinity')
    order by t.completed_at fetch first (coalesce((p_args->>'slice')::int, 1)) rows with ties)
  select jsonb_build_object('tasks', count(*) filter (where not e.is_kept),
    'steps', coalesce(sum(e.total) filter (where not e.is_kept), 0), 'kept', count(*) filter (where e.is_kept),
    'after', case when count(*) >= (p_args->>'slice')::int then max(e.completed_at) end)
  from ended e
$$;
