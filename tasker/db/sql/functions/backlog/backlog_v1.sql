-- Releases held steps by rank while their namespaces have room.
-- p_args: as advance_v1 without items, and limit. Answer: as advance_v1, with released.
create or replace function tasker.backlog_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_items jsonb;
  v_answer jsonb := '{}';
begin
  select jsonb_agg(jsonb_build_object('s', q.workflow_step_uuid, 't', q.task_uuid, 'kind', 'unhold')) into v_items
  from jsonb_array_elements_text(p_args->'namespace_ids') as n (id)
  cross join lateral (
    select b.workflow_step_uuid, b.task_uuid from tasker.ready_backlog b where b.namespace_id = n.id::int and not b.paused
    order by b.rank limit least(coalesce((p_args->>'limit')::int, 500),
      tasker.enqueue_room(n.id::int, coalesce((p_args->>'window')::int, 2000)))) q;
  if v_items is not null then
    v_answer := tasker.advance_v1(p_args || jsonb_build_object('items', v_items, 'wait', false));
    v_answer := v_answer || jsonb_build_object('released', jsonb_array_length(v_items)
      - (select count(*) from jsonb_object_keys(coalesce(nullif(v_answer->'verdicts', 'null'), '{}'))));
  end if;
  return v_answer - 'verdicts';
end
$$;
