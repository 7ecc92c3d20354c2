-- The size in bytes of an answer with the inputs of the handlers of these steps: contexts and results, each once.
-- Counts the size as sent: a stored value may take a hundredth of it. No value is read, because each row stores the
-- size of its value.
create or replace function tasker.claim_bytes(p_steps uuid[]) returns bigint
language plpgsql stable as $$
declare
  v_contexts bigint;
  v_results bigint;
begin
  select sum(d.context_bytes) into v_contexts
  from (select distinct s.task_uuid from tasker.workflow_steps s where s.workflow_step_uuid = any (p_steps)) t
  join tasker.task_details d on d.task_uuid = t.task_uuid;
  select sum(r.bytes) into v_results
  from tasker.results_of_ancestors(p_steps) w
  join tasker.step_results r on r.task_uuid = w.task_uuid and r.ordinal = w.ordinal;
  return coalesce(v_contexts, 0) + coalesce(v_results, 0);
end
$$;
