-- Held steps of the namespaces that are marked as paused, and that no pause holds, wait for room instead; how many. Those
-- that nobody served wait for room as well: somebody may have come meanwhile.
-- The namespaces are locked. Locks the held steps ORDER BY workflow_step_uuid.
create or replace function tasker.unpause_held(p_namespaces int[]) returns int
language plpgsql as $$
declare
  v_count int;
begin
  with freed as materialized (
    select b.workflow_step_uuid from tasker.ready_backlog b
    join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
    where b.namespace_id = any (p_namespaces) and b.paused
      and not exists (select from tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid))
    order by b.workflow_step_uuid for no key update of b
  )
  update tasker.ready_backlog b set paused = false, unserved = null from freed f where b.workflow_step_uuid = f.workflow_step_uuid;
  get diagnostics v_count = row_count;
  return v_count;
end
$$;
