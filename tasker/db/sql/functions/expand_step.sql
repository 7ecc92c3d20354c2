-- Creates the steps that completing one step decided, with their edges, and counts their unmet parents itself (the
-- plan is not trusted for that). Called by advance_v1 with the task locked and before the parent's children are
-- counted down, so the parent counts as unmet here and is met there. Answers how many new steps wait for nothing: all
-- their parents were done before (a convergence need not depend on the decision that makes it possible).
-- p_steps: [{"name", "ordinal", "parents": [name...], "inputs"?}] in topological order.
create or replace function tasker.expand_step(p_task uuid, p_steps jsonb, p_now timestamptz) returns int
language plpgsql as $$
declare
  v_seq int;
  v_count int := jsonb_array_length(p_steps);
  v_waiting int;
begin
  update tasker.tasks set next_seq = next_seq + v_count, total = total + v_count, graph_version = graph_version + 1
  where task_uuid = p_task returning next_seq - v_count into v_seq;

  insert into tasker.workflow_steps (workflow_step_uuid, task_uuid, namespace_id, template_id, ordinal, name, state,
    unmet, max_attempts, retryable, created_at, updated_at)
  select tasker.step_uuid(p_task, v_seq + x.i::int - 1), p_task, t.namespace_id, t.template_id, ts.ordinal,
    x.step->>'name', 'pending', 0, ts.max_attempts, ts.retryable, p_now, p_now
  from jsonb_array_elements(p_steps) with ordinality as x (step, i)
  join tasker.tasks t on t.task_uuid = p_task
  join tasker.template_steps ts on ts.template_id = t.template_id and ts.ordinal = (x.step->>'ordinal')::int;

  insert into tasker.step_inputs (workflow_step_uuid, inputs)
  select tasker.step_uuid(p_task, v_seq + x.i::int - 1), x.step->'inputs'
  from jsonb_array_elements(p_steps) with ordinality as x (step, i)
  where jsonb_typeof(x.step->'inputs') = 'object';

  insert into tasker.workflow_step_edges (task_uuid, from_step_uuid, to_step_uuid, name)
  select p_task, parent.workflow_step_uuid, tasker.step_uuid(p_task, v_seq + x.i::int - 1),
    case when (x.step->>'batch')::boolean then 'batch_dependency'
         when parent_step.step_type = 'batch_worker' then 'batch_convergence_dependency' else 'dependency' end
  from jsonb_array_elements(p_steps) with ordinality as x (step, i)
  cross join lateral jsonb_array_elements_text(x.step->'parents') as p (name)
  join tasker.workflow_steps parent on parent.task_uuid = p_task and parent.name = p.name
  join tasker.template_steps parent_step
    on parent_step.template_id = parent.template_id and parent_step.ordinal = parent.ordinal;

  update tasker.workflow_steps s set unmet = n.unmet
  from (select e.to_step_uuid, count(*)::int as unmet
        from generate_series(v_seq, v_seq + v_count - 1) as g (seq)
        join tasker.workflow_step_edges e on e.task_uuid = p_task and e.to_step_uuid = tasker.step_uuid(p_task, g.seq)
        join tasker.workflow_steps p on p.workflow_step_uuid = e.from_step_uuid
        where p.state not in ('complete', 'resolved_manually')
        group by e.to_step_uuid) n
  where s.workflow_step_uuid = n.to_step_uuid;
  get diagnostics v_waiting = row_count;
  return v_count - v_waiting;
end
$$;
