-- Writes the durable events of tasks that ended with this write, in its transaction and under the locks of
-- the tasks: task.completed, task.failed or task.cancelled. A task that is continued by an operator and ends
-- again has one more.
create or replace function tasker.write_task_events(p_tasks uuid[], p_now timestamptz) returns void
language sql as $$
  with written as (
    insert into tasker.domain_events (created_at, event_uuid, task_uuid, workflow_step_uuid,
      correlation_id, namespace_id,
      sort_key, number, attempt, name, step_name, outcome, delivery_mode, fired_by, payload)
    select p_now, tasker.uuid_v7(), t.task_uuid, t.task_uuid, d.correlation_id, t.namespace_id, t.sort_key, 0,
      0, tasker.task_event(t.state), '',
      case when tasker.task_is_done(t.state) then 'success' else 'permanent_failure' end, 'durable', 'tasker',
      jsonb_strip_nulls(jsonb_build_object('task_uuid', t.task_uuid, 'template', nt.name,
        'version', nt.version, 'status', t.state,
        'created_at', t.created_at, 'completed_at', t.completed_at, 'cancel_reason', d.cancel_reason,
        'outcome', t.outcome,
        'failed_steps', case when t.failed > 0 then (
          select jsonb_agg(f.name order by f.workflow_step_uuid)
          from (select s.name, s.workflow_step_uuid from tasker.workflow_steps s
            where s.task_uuid = t.task_uuid and s.state = 'error' and s.settled is null
            order by s.workflow_step_uuid limit 20) f) end))
    from tasker.tasks t join tasker.task_details d on d.task_uuid = t.task_uuid
    join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
    where t.task_uuid = any (p_tasks)
    returning event_id
  )
  insert into tasker.unplaced_events (event_id) select w.event_id from written w
$$;

-- The name of the event of a task that ended in this state.
create or replace function tasker.task_event(p_state text) returns text
language sql immutable parallel safe as $$
  select 'task.' || case when tasker.task_is_done(p_state) then 'completed'
      when p_state = 'cancelled' then 'cancelled' else 'failed' end
$$;
