-- {"release": [namespace ids]}: the namespaces of the caller with a backlog that may be released, because
-- half of the window of the queue is free or the namespace is ordered; {} if there are none. Costs one
-- index lookup for each namespace if nothing is backlogged; for a caller that serves more than 8 namespaces,
-- one for each namespace with a backlog.
create or replace function tasker.releasable(p_args jsonb) returns jsonb
language plpgsql stable as $$
declare
  v_window constant int not null := (p_args->>'window')::int;
  v_namespaces int[] := array(select n::int from jsonb_array_elements_text(p_args->'namespace_ids') n);
  v_ids jsonb;
begin
  if cardinality(v_namespaces) > 8 then
    v_namespaces := array(
      with recursive held as (   -- from each namespace to the next
        select (select b.namespace_id from tasker.ready_backlog b where not b.paused
          order by b.namespace_id, b.unserved, b.rank limit 1) as id
        union all
        select (select b.namespace_id from tasker.ready_backlog b where not b.paused and b.namespace_id > h.id
          order by b.namespace_id, b.unserved, b.rank limit 1) from held h where h.id is not null
      ) select h.id from held h where h.id = any (v_namespaces));
  end if;
  select jsonb_agg(n.id) into v_ids from unnest(v_namespaces) as n (id)
  -- in the order of the index, which no other index has
  where case when (select true from tasker.ready_backlog b
      where b.namespace_id = n.id and not b.paused and b.unserved is null
      order by b.namespace_id, b.unserved, b.rank limit 1)
    then not tasker.namespace_is_paused(n.id)
    and (tasker.window_size_left(n.id, v_window) * 2 >= v_window
      or exists (select from tasker.task_namespaces o where o.namespace_id = n.id and o.ordered)) end;
  return case when v_ids is null then '{}' else jsonb_build_object('release', v_ids) end;
end
$$;
