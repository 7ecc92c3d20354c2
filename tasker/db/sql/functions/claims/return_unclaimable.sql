-- The messages to send again after a moment, for other workers, for enqueued steps that a claim refused
-- because the caller lacks the handler. Steps whose handler no worker has return to the backlog and are set
-- aside: they need no message.
create or replace function tasker.return_unclaimable(p_steps uuid[], p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_unserved constant text[] := tasker.unserved_keys(array(
    select n::int from jsonb_array_elements_text(p_args->'namespace_ids') n order by 1));
  v_lost uuid[];
begin
  if cardinality(v_unserved) > 0 then
    v_lost := array(select s.workflow_step_uuid from tasker.workflow_steps s
      where s.workflow_step_uuid = any (p_steps) and s.template_id || ':' || s.ordinal = any (v_unserved));
    -- no room: all are backlogged
    perform tasker.hold_paused_steps(v_lost, p_args || '{"reason": "unserved", "window": 0}');
    perform tasker.mark_unserved(v_lost);
  end if;
  return (select jsonb_agg(jsonb_build_object('namespace', ns.name, 'step', s.workflow_step_uuid,
      'task', s.task_uuid, 'delay_ms', 500))
    from tasker.workflow_steps s join tasker.task_namespaces ns using (namespace_id)
    where s.workflow_step_uuid = any (p_steps) and s.state = 'enqueued');
end
$$;
