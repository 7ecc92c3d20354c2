-- Locks: tasks (skips), steps (skips), then as advance_v1.
-- Returns enqueued steps that a claim may not take to the backlog, because they are paused or unserved
-- (p_args.reason). Waits for no task and no step, because the claim has locks of steps: steps that another
-- transaction has locked are sent again after a moment.
-- Returns: {verdicts: {step: held}, send: [...]}.
create or replace function tasker.hold_paused_steps(p_steps uuid[], p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_tasks uuid[];
  v_items jsonb;
  v_answer jsonb := '{}';
begin
  select array_agg(q.task_uuid) into v_tasks from (
    select t.task_uuid from tasker.tasks t
    where t.task_uuid in (select s.task_uuid from tasker.workflow_steps s
      where s.workflow_step_uuid = any (p_steps))
    order by t.task_uuid for no key update skip locked) q;
  select jsonb_agg(jsonb_build_object('s', q.workflow_step_uuid, 't', q.task_uuid, 'kind', 'hold',
    'n', jsonb_build_object('reason', coalesce(p_args->>'reason', 'paused')))) into v_items
  from (
    select s.workflow_step_uuid, s.task_uuid from tasker.workflow_steps s
    where s.workflow_step_uuid = any (p_steps) and s.state = 'enqueued' and s.task_uuid = any (v_tasks)
    order by s.workflow_step_uuid for no key update skip locked) q;
  if v_items is not null then
    v_answer := tasker.advance_v1(p_args
      || jsonb_build_object('items', v_items, 'wait', false, 'slots', 0, 'grants', false));
  end if;
  return jsonb_build_object(
    'verdicts', (select coalesce(jsonb_object_agg(s, 'held'), '{}') from unnest(p_steps) s),
    'send', coalesce(nullif(v_answer->'send', 'null'), '[]') || (
      select coalesce(jsonb_agg(jsonb_build_object('namespace', ns.name, 'step', s.workflow_step_uuid,
        'task', s.task_uuid, 'delay_ms', 500)), '[]')
      from tasker.workflow_steps s join tasker.task_namespaces ns using (namespace_id)
      -- without the steps that are backlogged now
      where s.workflow_step_uuid = any (p_steps) and s.state = 'enqueued'));
end
$$;
