-- The inputs that the handlers of these steps read from their tasks: the contexts, and the results of every ancestor,
-- once each. Ancestors are found in the template by ordinal (tasker.results_of_ancestors); steps without a row or a result
-- are absent. Inputs that the database cannot return at once (256 MiB) are replaced by their sizes: that is a single
-- step that reads so much.
-- Returns: {tasks: {id: {template, namespace, context, correlation, priority, trace}}, results: {task id: {step name:
--   [ordinal, result]}}}, or {tasks, results: {}, too_large: as tasker.too_large}.
create or replace function tasker.shared_inputs(p_steps uuid[]) returns jsonb
language plpgsql stable as $$
declare
  v_answer jsonb;
begin
  with tasks as (
    select distinct s.task_uuid from tasker.workflow_steps s where s.workflow_step_uuid = any (p_steps)
  )
  select jsonb_build_object(
    'tasks', coalesce((select jsonb_object_agg(t.task_uuid, jsonb_build_object('template', t.template_id,
        'namespace', t.namespace_id, 'context', d.context, 'correlation', d.correlation_id, 'priority', t.priority, 'trace', d.trace))
      from tasks x join tasker.tasks t on t.task_uuid = x.task_uuid join tasker.task_details d on d.task_uuid = x.task_uuid),
      '{}'),
    'results', coalesce((select jsonb_object_agg(r.task_uuid, r.results) from (
        select w.task_uuid, jsonb_object_agg(sr.name, jsonb_build_array(sr.ordinal, sr.result)) as results
        from tasker.results_of_ancestors(p_steps) w join tasker.step_results sr on sr.task_uuid = w.task_uuid and sr.ordinal = w.ordinal
        group by w.task_uuid) r), '{}')) into v_answer;
  return v_answer;
exception when program_limit_exceeded then
  return jsonb_build_object('tasks', '{}'::jsonb, 'results', '{}'::jsonb, 'too_large', tasker.too_large(p_steps));
end
$$;
