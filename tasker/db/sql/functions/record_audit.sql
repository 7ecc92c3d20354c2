-- One audit row for each result or failure that a worker stored (B-85). A statement trigger: one pass over what the
-- statement wrote.
create or replace function tasker.record_audit() returns trigger
language plpgsql as $$
begin
  insert into tasker.workflow_step_result_audit (workflow_step_uuid, step_transition_id, task_uuid, recorded_at,
    worker_uuid, correlation_id, success, execution_time_ms)
  select w.workflow_step_uuid, w.id, w.task_uuid, w.created_at, w.worker_uuid, d.correlation_id, w.success,
    w.execution_time_ms
  from written w left join tasker.task_details d on d.task_uuid = w.task_uuid
  where w.success is not null;
  return null;
end
$$;
