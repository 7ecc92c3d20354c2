-- The graph of tasks as the planner needs it.
-- p_args: {tasks: [uuid...]}.
-- Returns: {task: {version, steps: [[name, ordinal, open]...], settled: {name: letter} of steps without
--   which the task goes on}}.
create or replace function tasker.graph_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(t.task_uuid, jsonb_build_object('version', t.graph_version, 'steps',
    (select jsonb_agg(jsonb_build_array(s.name, s.ordinal, not tasker.step_satisfies(s.state, s.settled))
       order by s.workflow_step_uuid) from tasker.workflow_steps s where s.task_uuid = t.task_uuid))
    || case when t.gates & 16 = 0 then '{}' else jsonb_build_object('settled', (
      select jsonb_object_agg(s.name, s.settled) from tasker.workflow_steps s
      where s.task_uuid = t.task_uuid and s.settled is not null)) end), '{}')
  from tasker.tasks t
  where t.task_uuid = any (array(select jsonb_array_elements_text(p_args->'tasks')::uuid))
$$;
