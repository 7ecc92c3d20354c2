-- Makes a namespace ordered: from the commit on, a claim takes the most urgent of its steps, and nothing is
-- enqueued, because a queue keeps the order of its messages. Each step that is ready and not handed off waits
-- in the backlog. Steps that are enqueued already return there when their messages are taken
-- (tasker.claim_v1). It stays ordered, so no step of it is ever enqueued between others again.
-- Locks: namespace.
create or replace function tasker.order_namespace(p_namespace int) returns boolean
language plpgsql as $$
begin
  update tasker.task_namespaces n set ordered = true where n.namespace_id = p_namespace and not n.ordered;
  return true;
end
$$;

-- True if a step of this priority is not handed off, because one of higher priority waits to be claimed in
-- its namespace. The age of steps does not count here: a task goes on where it runs beside tasks that are as
-- urgent. Rows of other namespaces have no priority, so this is one probe of an index without them.
create or replace function tasker.yields(p_namespace int, p_priority int) returns boolean
language sql stable as $$
  select exists (select from tasker.ready_backlog b
    where b.namespace_id = p_namespace and b.priority > p_priority and not b.paused and b.unserved is null)
$$;

-- The next steps of ordered namespaces, by rank or in turn (tasker.next_fair), as items of advance_v1: at
-- most `p_slots`, an equal share for each namespace, and unused shares for the others, beginning with the
-- one of number `p_turn`. Left out are steps that the caller does not serve, and those of tasks that
-- another transaction has locked, among the first of each namespace: another claim takes the steps behind
-- these.
-- Locks: turns of fair namespaces, tasks (skips).
-- Returns: the items, null without any; `passed_over`: steps of locked tasks may be claimed later, or others
--   took steps between the look and the lock, and more may wait behind these.
create or replace function tasker.next_ordered(p_namespaces int[], p_slots int, p_unserved text[], p_turn int,
  out items jsonb, out passed_over boolean)
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_bitmapscan to off
set jit to off
as $$
declare
  v_count constant int := cardinality(p_namespaces);
  v_ended boolean[] := array_fill(false, array[v_count]);   -- of these namespaces there is no more
  v_place int;
  v_share int;
  v_next uuid[];
  v_got uuid[];
  v_steps uuid[] := '{}';
begin
  passed_over := false;
  for v_round in 1..2 loop
    for v_nth in 0..v_count - 1 loop
      exit when cardinality(v_steps) >= p_slots;
      v_place := 1 + (v_nth + p_turn) % v_count;
      continue when v_ended[v_place];
      v_share := p_slots - cardinality(v_steps);
      if v_round = 1 then
        v_share := ceil(v_share::numeric / (v_count - v_nth));
      end if;
      if exists (select from tasker.task_namespaces n
          where n.namespace_id = p_namespaces[v_place] and n.fair_default is not null) then
        v_next := tasker.next_fair(p_namespaces[v_place], v_share, v_steps, p_unserved);
      else
        v_next := array(select b.workflow_step_uuid from tasker.ready_backlog b
          where b.namespace_id = p_namespaces[v_place]
            and not b.paused and b.unserved is null and b.workflow_step_uuid <> all (v_steps)
            and (cardinality(p_unserved) = 0 or exists (select from tasker.workflow_steps s
              where s.workflow_step_uuid = b.workflow_step_uuid
                and s.template_id || ':' || s.ordinal <> all (p_unserved)))
          order by b.unserved, b.rank limit 50 + 2 * v_share);
      end if;
      v_got := array(select x.step from unnest(v_next) with ordinality as x (step, nth)
        join tasker.tasks t on t.task_uuid = tasker.step_uuid(x.step, 0)
        order by x.nth limit v_share for no key update of t skip locked);
      passed_over := passed_over or cardinality(v_got) < least(v_share, cardinality(v_next));
      v_ended[v_place] := cardinality(v_got) < v_share;
      v_steps := v_steps || v_got;
    end loop;
  end loop;
  -- a later statement: a step may have been taken before its task was locked
  select jsonb_agg(jsonb_build_object('s', b.workflow_step_uuid, 't', b.task_uuid, 'kind', 'unhold')
    order by x.nth) into items
  from unnest(v_steps) with ordinality as x (step, nth)
  join tasker.ready_backlog b on b.workflow_step_uuid = x.step;
  passed_over := passed_over or coalesce(jsonb_array_length(items), 0) < cardinality(v_steps);
end
$$;
