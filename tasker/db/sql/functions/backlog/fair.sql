-- The next steps of a fair namespace: a round robin over its flows, in the order of their names; inside a
-- flow by rank. Each visit of a flow takes floor((round + 1) * q) - floor(round * q) steps, where q is its
-- weight in units of the least one: exact over rounds for every weight, without state of the flow. A visit
-- that `p_want` cuts short is continued by the next call. Steps that the caller does not
-- serve are passed over; after 200 visits that found no step, it stops, and the next call continues there.
-- Locks: turn of the namespace.
create or replace function tasker.next_fair(p_namespace int, p_want int, p_but uuid[], p_unserved text[])
returns uuid[]
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_bitmapscan to off
set jit to off
as $$
declare
  v_turn tasker.flow_turns;
  v_default float8;
  v_least float8;
  v_weight float8;
  v_flow text;
  v_due int;
  v_got uuid[];
  v_steps uuid[] := '{}';
  v_visits int := 0;   -- since the last step
  v_rounds int := 0;   -- that have ended since then
begin
  insert into tasker.flow_turns (namespace_id) values (p_namespace) on conflict do nothing;
  select * into v_turn from tasker.flow_turns t where t.namespace_id = p_namespace for no key update;
  select n.fair_default, least(n.fair_default, (select min(w.weight) from tasker.flow_weights w
    where w.namespace_id = p_namespace)) into v_default, v_least
  from tasker.task_namespaces n where n.namespace_id = p_namespace;
  while cardinality(v_steps) < p_want and v_visits < 200 loop
    v_flow := (select b.flow from tasker.ready_backlog b
      where b.namespace_id = p_namespace and b.flow > v_turn.after_flow
        and not b.paused and b.unserved is null
      order by b.flow limit 1);
    if v_flow is null then
      v_rounds := v_rounds + 1;
      exit when v_rounds > 1;
      v_turn.after_flow := '';
      v_turn.round := v_turn.round + 1;
      continue;
    end if;
    select w.weight into v_weight from tasker.flow_weights w
    where w.namespace_id = p_namespace and w.flow = v_flow;
    v_weight := coalesce(v_weight, v_default) / v_least;
    v_due := floor((v_turn.round + 1) * v_weight) - floor(v_turn.round * v_weight)
      - case when v_flow = v_turn.cut_flow then v_turn.cut else 0 end;
    v_got := array(select b.workflow_step_uuid from tasker.ready_backlog b
      where b.namespace_id = p_namespace and b.flow = v_flow and not b.paused and b.unserved is null
        and b.workflow_step_uuid <> all (p_but) and b.workflow_step_uuid <> all (v_steps)
        and (cardinality(p_unserved) = 0 or exists (select from tasker.workflow_steps s
          where s.workflow_step_uuid = b.workflow_step_uuid
            and s.template_id || ':' || s.ordinal <> all (p_unserved)))
      order by b.rank limit greatest(0, least(v_due, p_want - cardinality(v_steps))));
    v_steps := v_steps || v_got;
    if cardinality(v_got) > 0 then
      v_visits := 0;
      v_rounds := 0;
    end if;
    v_visits := v_visits + 1;
    if cardinality(v_steps) = p_want and cardinality(v_got) < v_due then
      v_turn.cut := cardinality(v_got) + case when v_flow = v_turn.cut_flow then v_turn.cut else 0 end;
      v_turn.cut_flow := v_flow;
    else
      v_turn.after_flow := v_flow;
      v_turn.cut_flow := null;
      v_turn.cut := 0;
    end if;
  end loop;
  update tasker.flow_turns t set after_flow = v_turn.after_flow, round = v_turn.round,
    cut_flow = v_turn.cut_flow, cut = v_turn.cut
  where t.namespace_id = p_namespace and t is distinct from v_turn;
  return v_steps;
end
$$;

-- The flow of a step: the value of the key in the input of its task; of a template without fairness, or of an
-- input without the value, one that all of these share. Null in a namespace that is not fair.
create or replace function tasker.flow_of(p_namespace int, p_task uuid, p_template int) returns text
language sql stable as $$
  select '=' || coalesce(tasker.limit_value(d.context #> t.fairness), '')
  from tasker.task_namespaces n, tasker.templates t, tasker.task_details d
  where n.namespace_id = p_namespace and n.fair_default is not null and t.template_id = p_template
    and d.task_uuid = p_task
$$;

-- True if a step is not handed off, because steps of other flows wait for their turn.
create or replace function tasker.yields_in_turn(p_namespace int, p_task uuid, p_template int) returns boolean
language sql stable as $$
  select exists (select from tasker.ready_backlog b where b.namespace_id = p_namespace
      and b.flow > '' and b.flow < f.flow and not b.paused and b.unserved is null)
    or exists (select from tasker.ready_backlog b where b.namespace_id = p_namespace
      and b.flow > f.flow and not b.paused and b.unserved is null)
  from (select tasker.flow_of(p_namespace, p_task, p_template) as flow) f
$$;

-- Makes a namespace fair, with these weights for all of its templates; backlogged steps get their flows.
-- Concurrent writes that do not see it yet backlog steps without a flow; a sweep adds it (mend_held).
-- p_fairness: {key, weights: {value: weight}, default}.
-- Locks: namespace, backlog.
create or replace function tasker.make_fair(p_namespace int, p_fairness jsonb) returns void
language plpgsql as $$
begin
  update tasker.task_namespaces n set ordered = true, fair_default = (p_fairness->>'default')::float8
  where n.namespace_id = p_namespace;
  delete from tasker.flow_weights w where w.namespace_id = p_namespace;
  insert into tasker.flow_weights (namespace_id, flow, weight)
  select p_namespace, '=' || tasker.limit_value(to_jsonb(w.value)), w.weight::float8
  from jsonb_each_text(p_fairness->'weights') as w (value, weight);
  perform tasker.give_flows(array(select b.workflow_step_uuid from tasker.ready_backlog b
    where b.namespace_id = p_namespace and b.flow is null order by 1));
end
$$;

-- Gives backlogged steps of fair namespaces the flows and priorities that they lack.
-- Locks: backlog.
create or replace function tasker.give_flows(p_steps uuid[]) returns void
language plpgsql as $$
begin
  with lacking as materialized (
    select b.workflow_step_uuid from tasker.ready_backlog b
    join tasker.task_namespaces n on n.namespace_id = b.namespace_id and n.fair_default is not null
    where b.workflow_step_uuid = any (p_steps) and b.flow is null
    order by b.workflow_step_uuid for no key update of b
  )
  update tasker.ready_backlog b set priority = t.priority,
    flow = tasker.flow_of(b.namespace_id, b.task_uuid, t.template_id)
  from lacking l, tasker.tasks t
  where b.workflow_step_uuid = l.workflow_step_uuid and t.task_uuid = b.task_uuid;
end
$$;
