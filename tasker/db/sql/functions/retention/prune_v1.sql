-- Deletes one slice of the finished tasks of a template, the oldest first, with all their rows, in this
-- transaction: as many tasks as have `steps` steps, and at least one. Each child that a step was to start
-- counts as a step. Skips tasks that another transaction has locked, and judges again under the locks: a task
-- that runs again is kept, and so is one with a pending dead letter or in a replay (tasker.is_kept).
-- Templates are kept; an ended replay is deleted with the last of its tasks.
-- Locks: tasks (skips), dead letters, steps.
-- p_args: {named_task_uuid, failed, before, pending_before (older dead letters retain no task; null: all do),
--   steps, after: {at, task} (end of the slice before)}
-- Returns: {tasks, steps: numbers deleted, kept: number of tasks of the slice that were not, after: start of
--   the next slice, null: there is none}
create or replace function tasker.prune_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_before constant timestamptz := (p_args->>'before')::timestamptz;
  v_named constant uuid := (p_args->>'named_task_uuid')::uuid;
  v_failed constant boolean := (p_args->>'failed')::boolean;
  v_at constant timestamptz := coalesce((p_args#>>'{after,at}')::timestamptz, '-infinity');
  v_task constant uuid := coalesce((p_args#>>'{after,task}')::uuid, '00000000-0000-0000-0000-000000000000');
  v_found uuid[];
  v_after jsonb;
  v_tasks uuid[];
  v_steps uuid[];
  v_replays uuid[];
begin
  perform tasker.require_read_committed();
  select array_agg(q.task_uuid order by q.completed_at, q.task_uuid),
    (array_agg(jsonb_build_object('at', q.completed_at, 'task', q.task_uuid)
        order by q.completed_at desc, q.task_uuid desc))[1]
  into v_found, v_after from (
    select n.task_uuid, n.completed_at,
      sum(n.total) over (order by n.completed_at, n.task_uuid) - n.total as before_it
    from (select t.task_uuid, t.completed_at, t.total + case when t.gates & 1024 = 0 then 0
        else (select coalesce(sum(f.total), 0) from tasker.fan_outs f
          where f.task_uuid = t.task_uuid) end as total
      from tasker.tasks t
      where t.complete and t.named_task_uuid = v_named and t.troubled = v_failed
        and t.completed_at < v_before and t.completed_at >= v_at
        and (t.completed_at, t.task_uuid) > (v_at, v_task)
      order by t.completed_at, t.task_uuid limit 1000) n) q
  where q.before_it < (p_args->>'steps')::int;
  if v_found is null then
    return '{"tasks": 0, "steps": 0, "kept": 0, "after": null}';
  end if;

  v_tasks := array(select q.task_uuid from (select t.task_uuid from tasker.tasks t
    where t.task_uuid = any (v_found) and t.complete and t.completed_at < v_before
    order by t.task_uuid for update skip locked) q);
  -- before they are judged: else one could be reopened
  perform from tasker.tasks_dlq e where e.task_uuid = any (v_tasks) order by e.dlq_entry_uuid for update;
  v_tasks := array(select u.task from unnest(v_tasks) u (task) where not tasker.is_kept(u.task,
    (p_args->>'pending_before')::timestamptz));   -- judged under the locks
  v_steps := array(select q.workflow_step_uuid from (select s.workflow_step_uuid from tasker.workflow_steps s
    where s.task_uuid = any (v_tasks) order by s.workflow_step_uuid for update) q);

  delete from tasker.ready_backlog b where b.workflow_step_uuid = any (v_steps);
  delete from tasker.timers m where m.subject = any (v_steps || v_tasks);
  delete from tasker.step_waits w where w.task_uuid = any (v_tasks);
  delete from tasker.wait_events w where w.task_uuid = any (v_tasks);
  delete from tasker.fan_outs f where f.task_uuid = any (v_tasks);
  delete from tasker.fan_out_items i where i.workflow_step_uuid = any (v_steps);
  delete from tasker.child_ends e where e.parent_step = any (v_steps);
  delete from tasker.task_families f where f.root_uuid = any (v_tasks);
  delete from tasker.approval_votes v where v.task_uuid = any (v_tasks);
  delete from tasker.limit_waiters w where w.workflow_step_uuid = any (v_steps);
  delete from tasker.limit_permits p where p.subject = any (v_steps || v_tasks);
  delete from tasker.unserved_steps u where u.workflow_step_uuid = any (v_steps);
  delete from tasker.step_checkpoints c where c.workflow_step_uuid = any (v_steps);
  delete from tasker.step_progress k where k.workflow_step_uuid = any (v_steps);
  delete from tasker.step_logs l where l.task_uuid = any (v_tasks);
  delete from tasker.step_inputs i where i.workflow_step_uuid = any (v_steps);
  delete from tasker.step_moves m where m.workflow_step_uuid = any (v_steps);
  delete from tasker.parked_events p where p.workflow_step_uuid = any (v_steps);
  delete from tasker.step_results r where r.task_uuid = any (v_tasks);
  delete from tasker.step_failures f where f.task_uuid = any (v_tasks);
  delete from tasker.refused_results r where r.task_uuid = any (v_tasks);
  delete from tasker.dynamic_edges e where e.task_uuid = any (v_tasks);
  delete from tasker.workflow_steps s where s.task_uuid = any (v_tasks);
  delete from tasker.task_moves m where m.task_uuid = any (v_tasks);
  delete from tasker.pauses p where p.task_uuid = any (v_tasks);
  delete from tasker.unique_keys k where k.task_uuid = any (v_tasks);
  delete from tasker.debounces b where b.task_uuid = any (v_tasks);
  delete from tasker.task_links l where l.child_uuid = any (v_tasks) or l.parent_task = any (v_tasks);
  delete from tasker.tasks_dlq e where e.task_uuid = any (v_tasks);
  with items as (delete from tasker.dlq_replay_items i where i.task_uuid = any (v_tasks)
    returning i.replay_uuid)
  select array_agg(distinct i.replay_uuid) into v_replays from items i;
  delete from tasker.dlq_replays r where r.replay_uuid = any (v_replays) and r.finished_at is not null
    and not exists (select from tasker.dlq_replay_items i where i.replay_uuid = r.replay_uuid);
  delete from tasker.task_details d where d.task_uuid = any (v_tasks);
  delete from tasker.tasks t where t.task_uuid = any (v_tasks);
  return jsonb_build_object('tasks', cardinality(v_tasks), 'steps', cardinality(v_steps),
    'kept', cardinality(v_found) - cardinality(v_tasks), 'after', v_after);
end
$$;
