-- Releases backlogged steps by rank while their namespaces have room. First sets aside the unserved ones
-- among those next by rank (and a few more), so that they take no room. Of ordered namespaces it claims the
-- next steps for the free slots of the caller (tasker.next_ordered).
-- p_args: as advance_v1 without items, limit, turn (the ordered namespace to begin with; default: random).
-- Returns: as advance_v1, with released, and passed_over (true: steps of tasks that other transactions have
--   locked are next in an ordered namespace).
create or replace function tasker.backlog_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_namespaces constant int[] := array(select n::int from jsonb_array_elements_text(p_args->'namespace_ids') n
    where not tasker.namespace_is_paused(n::int) order by 1);
  v_ordered constant int[] := array(select n.namespace_id from tasker.task_namespaces n
    where n.ordered and n.namespace_id = any (v_namespaces));
  v_slots constant int := coalesce((p_args->>'slots')::int, 0);
  v_limit constant int not null := (p_args->>'limit')::int;
  v_window constant int not null := (p_args->>'window')::int;
  v_unserved constant text[] := tasker.unserved_keys(v_namespaces);
  v_items jsonb;
  v_waited jsonb;   -- by step of ordered namespaces: since when it waits
  v_first jsonb;
  v_passed_over boolean := false;
  v_answer jsonb := '{}';
begin
  if cardinality(v_unserved) > 0 then
    perform tasker.mark_unserved(array(
      select q.workflow_step_uuid from unnest(v_namespaces) as n (id)
      cross join lateral (
        select b.workflow_step_uuid from tasker.ready_backlog b
        where b.namespace_id = n.id and not b.paused and b.unserved is null
        order by b.unserved, b.rank limit 20 + case when n.id = any (v_ordered) then v_slots
          else least(v_limit, tasker.window_size_left(n.id, v_window)) end) q
      join tasker.workflow_steps s on s.workflow_step_uuid = q.workflow_step_uuid
      where s.template_id || ':' || s.ordinal = any (v_unserved)));
  end if;
  select jsonb_agg(jsonb_build_object('s', q.workflow_step_uuid, 't', q.task_uuid, 'kind', 'unhold'))
  into v_items
  from unnest(v_namespaces) as n (id)
  cross join lateral (   -- by `unserved` too: it is null for all of them, and the index has this order
    select b.workflow_step_uuid, b.task_uuid from tasker.ready_backlog b
    where b.namespace_id = n.id and not b.paused and b.unserved is null
    order by b.unserved, b.rank limit least(v_limit, tasker.window_size_left(n.id, v_window))) q
  where n.id <> all (v_ordered);
  if cardinality(v_ordered) > 0 and v_slots > 0 then
    select q.items, q.passed_over into v_first, v_passed_over from tasker.next_ordered(v_ordered, v_slots,
      array(select jsonb_array_elements_text(p_args->'unserved')),
      coalesce((p_args->>'turn')::int, (random() * 1000000)::int)) q;
    if v_first is not null then   -- the slots are theirs: steps of the others are enqueued
      v_waited := (select jsonb_object_agg(b.workflow_step_uuid,
          round(extract(epoch from tasker.now() - b.ready_at) * 1000))
        from tasker.ready_backlog b where b.workflow_step_uuid in (
          select (i->>'s')::uuid from jsonb_array_elements(v_first) i));
      v_items := v_first || coalesce(v_items, '[]');
      p_args := p_args || jsonb_build_object('namespace_ids', to_jsonb(v_ordered));
    end if;
  end if;
  if v_items is not null then
    v_answer := tasker.advance_v1(p_args || jsonb_build_object('items', v_items, 'wait', false));
    if v_waited is not null and jsonb_typeof(v_answer->'claims') = 'array' then
      v_answer := jsonb_set(v_answer, '{claims}', (select jsonb_agg(c || case when v_waited ? (c->>'step')
            then jsonb_build_object('waited_ms', v_waited->(c->>'step')) else '{}' end order by n)
        from jsonb_array_elements(v_answer->'claims') with ordinality as x (c, n)));
    end if;
    v_answer := v_answer || jsonb_build_object('released', jsonb_array_length(v_items)
      - (select count(*) from jsonb_object_keys(coalesce(nullif(v_answer->'verdicts', 'null'), '{}'))));
    if exists (select from unnest(v_namespaces) as n (id) cross join lateral (
        select from tasker.ready_backlog b
        where b.namespace_id = n.id and not b.paused and b.unserved is not null limit 1) a) then
      perform tasker.apply_probe_results(array(select (i->>'s')::uuid
          from jsonb_array_elements(v_items) i), v_unserved);
    end if;
  end if;
  return (v_answer - 'verdicts') || case when v_passed_over then '{"passed_over": true}' else '{}'::jsonb end;
end
$$;
