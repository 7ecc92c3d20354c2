-- The invariants of a task's fan-outs: a part of violations_v1.
create or replace function tasker.fan_out_violations(p_task uuid)
returns table (rule text, subject uuid, detail text)
language sql stable as $$
  with tasks as (select p_task as task_uuid)
  select 'counters of a fan-out differ from its items', f.workflow_step_uuid, format(
    'started %s of %s, running %s, succeeded %s, failed %s; items %s, %s, %s, %s', f.started, f.total,
    f.running, f.succeeded, f.failed, i.items, i.running, i.succeeded, i.failed)
  from tasks t join tasker.fan_outs f on f.task_uuid = t.task_uuid
  cross join lateral (select count(*) as items, count(*) filter (where x.state = 'r') as running,
      count(*) filter (where x.state = 'o') as succeeded, count(*) filter (where x.state = 'f') as failed,
      count(*) filter (where x.state <> 'w') as started
    from tasker.fan_out_items x
    where x.workflow_step_uuid = f.workflow_step_uuid and x.token = f.token) i
  where (f.total, f.started, f.running, f.succeeded, f.failed)
    <> (i.items, i.started, i.running, i.succeeded, i.failed) or f.running > f.max_parallel
  union all
  select 'open fan-out of a step that does not wait for it', f.workflow_step_uuid, format('token %s', f.token)
  from tasks t join tasker.fan_outs f on f.task_uuid = t.task_uuid and f.state <> 'c'
  where not exists (select from tasker.step_waits w where w.workflow_step_uuid = f.workflow_step_uuid
    and w.token = f.token and w.kind = 'c' and w.probed and w.ended_at is null)
  union all
  select 'step waits for children without a fan-out', w.workflow_step_uuid, format('token %s', w.token)
  from tasks t join tasker.step_waits w on w.task_uuid = t.task_uuid and w.kind = 'c' and w.probed
    and w.ended_at is null
  where not exists (select from tasker.fan_outs f where f.workflow_step_uuid = w.workflow_step_uuid
    and f.token = w.token and f.state <> 'c')
  union all
  select 'child task ended, and its step does not know of it', i.task_uuid, format('item %s of %s', i.index,
    i.workflow_step_uuid)
  from tasks t join tasker.fan_outs f on f.task_uuid = t.task_uuid and f.state <> 'c'
  join tasker.fan_out_items i on i.workflow_step_uuid = f.workflow_step_uuid and i.token = f.token
    and i.state = 'r'
  join tasker.tasks c on c.task_uuid = i.task_uuid
  where c.complete and not exists (select from tasker.child_ends e where e.child_uuid = c.task_uuid)
$$;
