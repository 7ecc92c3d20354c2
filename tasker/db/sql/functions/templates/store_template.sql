-- Stores a compiled template under the hash of its content, with its steps and edges as rows; returns its
-- identifier, or that of the existing one.
create or replace function tasker.store_template(p_hash text, p_plan jsonb, p_namespace int,
  p_named_task uuid) returns int
language plpgsql
set enable_seqscan to off      -- whatever outdated statistics say of small templates
set enable_nestloop to off
set jit to off                 -- the cost of disabled nodes would trigger it
as $$
declare
  v_prefix constant text := (p_plan->>'namespace') || '.' || (p_plan->>'name') || '.';
  v_ordinals constant jsonb := (
    select jsonb_object_agg(s->>'name', s->'ordinal') from jsonb_array_elements(p_plan->'steps') s);
  v_static constant jsonb := (   -- a failure branch gets its edges when it is created
    select jsonb_object_agg(s->>'name', true) from jsonb_array_elements(p_plan->'steps') s
    where (s->>'static')::boolean);
  -- of each step
  v_gates constant int := case when jsonb_typeof(p_plan->'concurrency') = 'object' then 1 else 0 end;
  v_template int;
begin
  insert into tasker.templates (hash, namespace_id, named_task_uuid, step_count, static_count,
    gates, roots, fairness, plan)
  select p_hash, p_namespace, p_named_task, count(*), count(*) filter (where (s->>'static')::boolean),
    coalesce(bit_or(tasker.gates_of(s)), 0) | case when (p_plan->>'task_events')::boolean then 512
      else 0 end | case when jsonb_typeof(p_plan->'unique') = 'object' then 32 else 0 end
      | case when jsonb_typeof(p_plan->'debounce') = 'object' then 64 else 0 end
      | case when p_plan->>'release' = 'finish_started_first' then 2 else 0 end | v_gates,
    coalesce(array_agg((s->>'ordinal')::int order by (s->>'ordinal')::int)
      filter (where (s->>'static')::boolean and jsonb_array_length(s->'depends_on') = 0), '{}'),
    case when jsonb_typeof(p_plan->'fairness') = 'object'
      then array(select jsonb_array_elements_text(p_plan->'fairness'->'key')) end, p_plan
  from jsonb_array_elements(p_plan->'steps') s
  on conflict (hash) do nothing returning template_id into v_template;
  if v_template is null then
    select template_id into v_template from tasker.templates where hash = p_hash;
    return v_template;
  end if;

  -- here, not in the transactions that submit, which may stay open
  if (p_plan->>'priority')::int <> 0 or p_plan->>'release' <> 'by_age' then
    perform tasker.order_namespace(p_namespace);
  end if;

  insert into tasker.named_steps (name, system_name)
  select s->>'name', v_prefix || (s->>'name') from jsonb_array_elements(p_plan->'steps') s order by 2
  on conflict (system_name) do nothing;

  insert into tasker.template_steps (template_id, ordinal, name, named_step_uuid, step_type, handler,
    is_static, unmet,
    max_attempts, retryable, timeout_ms, on_worker_lost, max_in_process_minutes, max_elapsed_ms, gates,
    delay_ms, not_before, requires, slots, wait, undoes, parents)
  select v_template, (s->>'ordinal')::int, s->>'name', (select ns.named_step_uuid from tasker.named_steps ns
      where ns.system_name = v_prefix || (s->>'name')), s->>'type', s->'handler'->>'callable',
    (s->>'static')::boolean, (
      select count(*) from jsonb_array_elements_text(s->'depends_on') d (name)
      where v_static ? d.name or not (s->>'static')::boolean),
    least(greatest((s->'retry'->>'max_attempts')::numeric, 1), 2147483647)::int,
    (s->'retry'->>'retryable')::boolean, tasker.clamped_ms((s->>'timeout_seconds')::numeric * 1000),
    s->>'on_worker_lost', (s->'lifecycle'->>'max_steps_in_process_minutes')::double precision,
    tasker.clamped_ms((s->'retry'->>'max_elapsed_ms')::numeric), tasker.gates_of(s) | v_gates,
    tasker.clamped_ms((s->>'delay_seconds')::numeric * 1000), nullif(s->'not_before', 'null'),
    array(select jsonb_array_elements_text(coalesce(nullif(s->'requires', 'null'), '[]'))),
    coalesce((s->>'slots')::int, 1), nullif(s->'wait', 'null'),
    (v_ordinals->(s->>'undoes'))::int,
    array(select (v_ordinals->d.name)::int from jsonb_array_elements_text(s->'depends_on') d (name)
      where v_ordinals ? d.name order by 1)
  from jsonb_array_elements(p_plan->'steps') s;

  insert into tasker.template_limits (template_id, ordinal, nth, rule_id, key)
  select v_template, (s->>'ordinal')::int, l.nth, tasker.limit_rule(l.rule->>'name'),
    nullif(l.rule->'key', 'null')
  from jsonb_array_elements(p_plan->'steps') s,
    jsonb_array_elements(nullif(s->'limits', 'null')) with ordinality l (rule, nth)
  union all
  select v_template, -1, 1, tasker.limit_rule(l->>'name'), nullif(l->'key', 'null')
  from (select p_plan->'concurrency') as p (l)
  where v_gates <> 0;

  insert into tasker.template_events (template_id, ordinal, number, name, condition, delivery_mode, checked)
  select v_template, (s->>'ordinal')::int, e.number - 1, e.event->>'name', e.event->>'condition',
    e.event->>'delivery_mode', coalesce(jsonb_typeof(e.event->'schema') = 'object', false)
  from jsonb_array_elements(p_plan->'steps') s,
    jsonb_array_elements(s->'publishes_events') with ordinality e (event, number)
  where e.event->>'delivery_mode' <> 'fast';

  -- Two lists joined whatever the statistics say, which may never have seen this many rows of a template.
  insert into tasker.template_edges (template_id, from_ordinal, to_ordinal)
  with static as materialized (
    select t.ordinal, t.parents from tasker.template_steps t where t.template_id = v_template and t.is_static
  ), pairs as materialized (
    select unnest(s.parents) as parent, s.ordinal as child from static s
  )
  select v_template, p.parent, p.child from pairs p join static s on s.ordinal = p.parent;
  return v_template;
end
$$;
