-- The steps of a task that a replay resets: those in `error`, of one fingerprint or of any, that may run again. A lost
-- step that may run only once (on_worker_lost: fail) is marked `once`: an operator must name it.
create or replace function tasker.replayable(p_task uuid, p_fingerprint text)
returns table (step_uuid uuid, name text, once boolean)
language sql stable
as $$
  select s.workflow_step_uuid, s.name, ts.on_worker_lost = 'fail' and coalesce(f.error_type = 'worker_lost', false)
  from tasker.workflow_steps s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  left join lateral (select x.error->>'error_type' as error_type, x.error->>'fingerprint' as fingerprint
    from tasker.step_failures x where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
    order by x.failure_id desc limit 1) f on true
  where s.task_uuid = p_task and s.state = 'error' and (p_fingerprint is null or f.fingerprint = p_fingerprint)
$$;
