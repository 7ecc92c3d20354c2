-- Those of the steps that are paused. The pauses are share-locked until the caller commits: resume_v1 waits, and then
-- finds the steps that the caller backlogged because of them.
create or replace function tasker.paused_of(p_steps uuid[]) returns uuid[]
language plpgsql as $$
declare
  v_pauses int[];
  v_answer uuid[];
begin
  select array_agg(distinct f.pause_id) into v_pauses
  from tasker.workflow_steps s
  cross join lateral tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid) f
  where s.workflow_step_uuid = any (p_steps);
  if v_pauses is null then
    return '{}';
  end if;
  perform from tasker.pauses p where p.pause_id = any (v_pauses) order by p.pause_id for key share;
  select array_agg(s.workflow_step_uuid) into v_answer   -- a later statement: a pause may have ended meanwhile
  from tasker.workflow_steps s
  where s.workflow_step_uuid = any (p_steps) and exists (
    select from tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid) f where f.pause_id = any (v_pauses));
  return coalesce(v_answer, '{}');
end
$$;
