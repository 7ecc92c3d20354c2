-- {"release": [namespace ids]}: those of the caller's namespaces whose backlog of held steps has room in the queue again
-- (half the window is free); {} when there is none. One index probe per namespace when nothing is held; of who serves many
-- namespaces one per namespace in which something is held.
create or replace function tasker.releasable(p_args jsonb) returns jsonb
language plpgsql stable as $$
declare
  v_window constant int := coalesce((p_args->>'window')::int, 2000);
  v_namespaces int[] := array(select n::int from jsonb_array_elements_text(p_args->'namespace_ids') n);
  v_ids jsonb;
begin
  if cardinality(v_namespaces) > 8 then
    v_namespaces := array(
      with recursive held as (   -- from each to the next
        select (select b.namespace_id from tasker.ready_backlog b where not b.paused
          order by b.namespace_id, b.unserved, b.rank limit 1) as id
        union all
        select (select b.namespace_id from tasker.ready_backlog b where not b.paused and b.namespace_id > h.id
          order by b.namespace_id, b.unserved, b.rank limit 1) from held h where h.id is not null
      ) select h.id from held h where h.id = any (v_namespaces));
  end if;
  select jsonb_agg(n.id) into v_ids from unnest(v_namespaces) as n (id)
  where case when (select true from tasker.ready_backlog b   -- in the index's order, which no other index fits
      where b.namespace_id = n.id and not b.paused and b.unserved is null
      order by b.namespace_id, b.unserved, b.rank limit 1)
    then not tasker.namespace_is_paused(n.id)
    and tasker.enqueue_room(n.id, v_window) * 2 >= v_window end;
  return case when v_ids is null then '{}' else jsonb_build_object('release', v_ids) end;
end
$$;
