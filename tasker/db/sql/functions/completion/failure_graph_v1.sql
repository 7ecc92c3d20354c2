-- The graph of a task as the planner of failures needs it.
-- p_args: {task}.
-- Returns: {version, template, steps: [[uuid, name, ordinal, state, settled]...], edges: [[from, to]...]: of
--   steps that were created while the task ran}; null without a task.
create or replace function tasker.failure_graph_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('version', t.graph_version, 'template', t.template_id,
    'steps', (select jsonb_agg(jsonb_build_array(s.workflow_step_uuid, s.name, s.ordinal, s.state, s.settled)
        order by s.workflow_step_uuid) from tasker.workflow_steps s where s.task_uuid = t.task_uuid),
    'edges', coalesce((select jsonb_agg(jsonb_build_array(e.from_step_uuid, e.to_step_uuid))
        from tasker.dynamic_edges e where e.task_uuid = t.task_uuid), '[]'))
  from tasker.tasks t where t.task_uuid = (p_args->>'task')::uuid
$$;
