-- {"release": [namespace ids]}: those of the caller's namespaces whose backlog of held steps has room in the queue again
-- (half the window is free); {} when there is none. One index probe per namespace when nothing is held.
create or replace function tasker.releasable(p_args jsonb) returns jsonb
language plpgsql stable as $$
declare
  v_window constant int := coalesce((p_args->>'window')::int, 2000);
  v_ids jsonb;
begin
  select jsonb_agg(n.id::int) into v_ids from jsonb_array_elements_text(p_args->'namespace_ids') as n (id)
  where exists (select from tasker.ready_backlog b where b.namespace_id = n.id::int and not b.paused and b.unserved is null)
    and not tasker.namespace_is_paused(n.id::int)
    and tasker.enqueue_room(n.id::int, v_window) * 2 >= v_window;
  return case when v_ids is null then '{}' else jsonb_build_object('release', v_ids) end;
end
$$;
