-- The first running step of a task that exceeds the time limit of its template, or that wrote checkpoints and stopped
-- doing so without reporting progress either. A step without checkpoints is judged by its run time alone.
create or replace function tasker.slowest_open_step(p_task uuid, p_template int)
returns table (name text, signal text, minutes double precision, limit_minutes double precision)
language sql stable rows 1
as $$
  select q.name, case when q.ran >= q.most then 'step_duration' else 'checkpoint_stalled' end,
    case when q.ran >= q.most then q.ran else q.silent end, case when q.ran >= q.most then q.most else q.stall end
  from (
    select s.name, s.workflow_step_uuid, ts.max_in_process_minutes as most, g.checkpoint_stall_minutes as stall,
      extract(epoch from tasker.now() - s.started_at)::double precision / 60 as ran,
      extract(epoch from tasker.now() - greatest(c.updated_at, s.started_at, p.reported_at))::double precision / 60 as silent,
      c.updated_at is not null as has_checkpoint
    from tasker.workflow_steps s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    cross join tasker.staleness_settings g
    left join tasker.step_checkpoints c on c.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.step_progress p on p.workflow_step_uuid = s.workflow_step_uuid and p.claim_token = s.claim_token
    where p_task is not null and s.task_uuid = p_task and s.state = 'in_progress'
      and exists (select from tasker.template_steps any_step where any_step.template_id = p_template
        and (any_step.max_in_process_minutes is not null or any_step.step_type = 'batch_worker'))) q
  where q.ran >= q.most or (q.has_checkpoint and q.silent >= q.stall)
  order by q.workflow_step_uuid limit 1
$$;
