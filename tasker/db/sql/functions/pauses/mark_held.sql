-- Compares the marks of one slice of a namespace's backlogged steps with the pauses, and corrects those that differ. A
-- step that loses its mark waits for room even if it was unserved before, because a worker for it may have started
-- meanwhile. The caller has locked the namespace.
-- Locks: the backlogged steps that it changes ORDER BY workflow_step_uuid.
-- p_after, p_until: the steps behind the first, up to the second; p_slice: maximum number.
-- Returns: {freed: number of steps that lost their mark, last: step, if there may be more behind it}.
create or replace function tasker.mark_held(p_namespace int, p_after uuid, p_until uuid, p_slice int) returns jsonb
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_last uuid;
  v_count int;
  v_freed int;
begin
  with slice as materialized (
    select b.workflow_step_uuid, b.paused from tasker.ready_backlog b
    where b.namespace_id = p_namespace and b.workflow_step_uuid > p_after and b.workflow_step_uuid <= p_until
    order by b.workflow_step_uuid limit p_slice
  ), wrong as materialized (
    select b.workflow_step_uuid, x.paused from slice x
    join tasker.workflow_steps s on s.workflow_step_uuid = x.workflow_step_uuid
    join tasker.ready_backlog b on b.workflow_step_uuid = x.workflow_step_uuid
    where x.paused <> tasker.narrowly_paused(s.namespace_id, s.template_id, s.ordinal, s.task_uuid)
    order by b.workflow_step_uuid for no key update of b
  ), corrected as (
    update tasker.ready_backlog b set paused = not w.paused, unserved = case when not w.paused then b.unserved end
    from wrong w where b.workflow_step_uuid = w.workflow_step_uuid
    returning b.paused
  )
  select (select x.workflow_step_uuid from slice x order by x.workflow_step_uuid desc limit 1), (select count(*) from slice),
    (select count(*) from corrected c where not c.paused)
  into v_last, v_count, v_freed;
  return jsonb_build_object('freed', v_freed) || case when v_count = p_slice then jsonb_build_object('last', v_last) else '{}' end;
end
$$;
