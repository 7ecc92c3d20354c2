-- Closes the open fan-outs of steps that do not wait for their children any more, and has the children
-- cancelled that run: the timekeeper cancels each in a transaction of its own. A start of children that is
-- under way is waited for, so that its children are seen.
-- Locks: fan-outs.
create or replace function tasker.close_fan_outs(p_steps uuid[], p_now timestamptz) returns void
language plpgsql as $$
begin
  perform from tasker.fan_outs f where f.workflow_step_uuid = any (p_steps) and f.state <> 'c'
  order by f.workflow_step_uuid, f.token for no key update;
  with closed as (   -- a later statement: the rows as the lock left them
    update tasker.fan_outs f set state = 'c', ended_at = p_now
    where f.workflow_step_uuid = any (p_steps) and f.state <> 'c'
    returning f.workflow_step_uuid, f.token, f.running
  )
  insert into tasker.timers (subject, kind, due_at, task_uuid, token)
  select i.task_uuid, 'p', p_now, i.task_uuid, 0
  from closed c
  join tasker.fan_out_items i on i.workflow_step_uuid = c.workflow_step_uuid and i.token = c.token
  where c.running > 0 and i.state = 'r'
  on conflict (subject, kind) do nothing;
end
$$;

-- Stops a fan-out if more of its children failed than are tolerated: none is started any more, and those that
-- run are cancelled.
-- Locks: the caller has locked the fan-out.
create or replace function tasker.stop_failed_fan_out(p_step uuid, p_token bigint, p_now timestamptz)
returns void
language sql as $$
  with stopped as (
    update tasker.fan_outs f set state = 's'
    where f.workflow_step_uuid = p_step and f.token = p_token and f.state = 'o' and f.failed > f.tolerated
    returning f.workflow_step_uuid, f.token, f.running
  )
  insert into tasker.timers (subject, kind, due_at, task_uuid, token)
  select i.task_uuid, 'p', p_now, i.task_uuid, 0
  from stopped s
  join tasker.fan_out_items i on i.workflow_step_uuid = s.workflow_step_uuid and i.token = s.token
  where s.running > 0 and i.state = 'r'
  on conflict (subject, kind) do nothing
$$;

-- Appends the ends of child tasks for the steps that wait for them (gather_v1).
create or replace function tasker.write_child_ends(p_tasks uuid[]) returns void
language sql as $$
  insert into tasker.child_ends (parent_step, token, index, child_uuid, ok)
  select l.parent_step, l.token, l.index, l.child_uuid, tasker.task_is_done(t.state)
  from tasker.task_links l join tasker.tasks t on t.task_uuid = l.child_uuid
  where l.child_uuid = any (p_tasks) and l.token is not null
$$;

-- Copies the fan-outs of the steps that a new task takes over from another one (rerun_v1).
create or replace function tasker.copy_fan_outs(p_from uuid, p_to uuid) returns void
language sql as $$
  with copied as (
    insert into tasker.fan_outs (workflow_step_uuid, token, task_uuid, template_id, depth, is_list, collects,
      total, max_parallel, tolerated, started, succeeded, failed, output_bytes, state, opened_at, ended_at)
    select s.workflow_step_uuid, f.token, p_to, f.template_id, f.depth, f.is_list, f.collects, f.total,
      f.max_parallel, f.tolerated, f.started, f.succeeded, f.failed, f.output_bytes, 'c', f.opened_at,
      f.ended_at
    from tasker.fan_outs f
    join tasker.workflow_steps s on s.workflow_step_uuid
      = (left(p_to::text, 30) || right(f.workflow_step_uuid::text, 6))::uuid and s.state = 'complete'
    where f.task_uuid = p_from and f.state = 'c' and f.running = 0
    returning workflow_step_uuid, token
  )
  insert into tasker.fan_out_items (workflow_step_uuid, token, index, state, task_uuid, output, error)
  select c.workflow_step_uuid, i.token, i.index, i.state, i.task_uuid, i.output, i.error
  from copied c
  join tasker.fan_out_items i on i.token = c.token and i.workflow_step_uuid
    = (left(p_from::text, 30) || right(c.workflow_step_uuid::text, 6))::uuid
$$;
