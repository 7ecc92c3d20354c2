-- Tasks of which an operator changes a step continue: after a compensation they are compensating again;
-- without one they leave the phase of their steps of `finally`, which follows when the others have come to
-- rest again.
-- Locks: tasks. The caller has locked them.
create or replace function tasker.leave_phase(p_judged tasker.judged_change[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_tasks uuid[];
begin
  update tasker.tasks t set outcome = 'compensating',
    phase = case when t.phase in ('k', 'x') then 'k' else 'c' end
  where t.outcome in ('compensation_failed', 'compensated') and t.task_uuid = any (array(
    select j.task_uuid from unnest(p_judged) j
    join tasker.template_steps ts on ts.template_id = j.template_id and ts.ordinal = j.ordinal
    where tasker.kind_reopens(j.kind) and ts.undoes is not null));
  with again as (
    update tasker.tasks t set phase = null
    where t.phase = 'f' and t.outcome is null and t.task_uuid = any (array(
      select j.task_uuid from unnest(p_judged) j
      where tasker.kind_reopens(j.kind) and not tasker.is_late(j.template_id, j.ordinal)))
    returning t.task_uuid, t.complete
  )
  select array_agg(a.task_uuid) into v_tasks from again a where not a.complete;
  if v_tasks is not null then
    perform tasker.write_deadlines(v_tasks, p_now);
  end if;
end
$$;
