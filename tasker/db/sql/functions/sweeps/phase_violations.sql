-- Violated invariants of tasks in a phase, as rows of violations_v1: compensations and steps of `finally`.
create or replace function tasker.phase_violations(p_tasks uuid[])
returns table (rule text, subject uuid, detail text)
language plpgsql stable
set plan_cache_mode to force_custom_plan
as $$
#variable_conflict use_column
begin
  return query
  with tasks as materialized (
    select t.* from tasker.tasks t where t.task_uuid = any (p_tasks)
      and (t.phase is not null or t.gates & 4096 <> 0 or t.outcome is not null)
  ), steps as materialized (
    select s.* from tasks t join tasker.workflow_steps s on s.task_uuid = t.task_uuid
  )
  select 'ended without its steps of finally', t.task_uuid, t.state from tasks t
  where t.complete and t.gates & 4096 <> 0 and (t.phase in ('f', 'x')) is not true
  union all
  select 'phase without steps', t.task_uuid, t.phase::text || ' ' || t.state from tasks t
  where t.phase in ('f', 'x') and not exists (select from steps s join tasker.template_steps ts
      on ts.template_id = s.template_id and ts.ordinal = s.ordinal
      where s.task_uuid = t.task_uuid and ts.gates & 4096 <> 0)
  union all
  select 'step of another part runs in phase ' || t.phase::text, s.workflow_step_uuid, s.name
  from tasks t join steps s on s.task_uuid = t.task_uuid
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  where t.phase is not null and tasker.step_is_under_way(s.state)
    and case when ts.undoes is not null then t.phase not in ('c', 'k') else ts.gates & 4096 = 0 end
  union all
  select 'phase of a compensation differs from the outcome', t.task_uuid,
    concat(t.phase, ' ', t.outcome, ' ', t.state) from tasks t
  where t.outcome = 'compensating' and (t.complete or (t.phase in ('c', 'k')) is not true)
    or t.complete and t.phase in ('c', 'k') and t.outcome not in ('compensated', 'compensation_failed')
  union all
  select 'compensation of a step that is not complete', s.workflow_step_uuid, s.name
  from steps s join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  where ts.undoes is not null and not exists (select from steps u where u.task_uuid = s.task_uuid
    and u.ordinal = ts.undoes and u.state = 'complete')
  union all
  select 'complete step without its compensation', u.workflow_step_uuid, u.name
  from tasks t join steps u on u.task_uuid = t.task_uuid
  join tasker.template_steps ts on ts.template_id = u.template_id and ts.undoes = u.ordinal
  where t.outcome in ('compensating', 'compensated', 'compensation_failed') and u.state = 'complete'
    and not exists (select from steps s where s.task_uuid = u.task_uuid and s.ordinal = ts.ordinal);
end
$$;
