-- The rule of this name, created without a limit if it is missing.
create or replace function tasker.limit_rule(p_name text) returns int
language plpgsql as $$
declare
  v_rule int;
begin
  select rule_id into v_rule from tasker.limit_rules where name = p_name;
  if v_rule is null then
    insert into tasker.limit_rules (name) values (p_name) on conflict (name) do nothing;
    select rule_id into v_rule from tasker.limit_rules where name = p_name;
  end if;
  return v_rule;
end
$$;

-- Sets the limits that a registered template gives as numbers, unless a newer version of it is registered:
-- versions share their limits, and the newest decides.
-- Locks: the rules, in the order of their names.
create or replace function tasker.set_limits(p_plan jsonb) returns void
language plpgsql as $$
begin
  if not (jsonb_path_exists(p_plan, '$.steps[*].limits[*]')
    or jsonb_typeof(p_plan->'concurrency') = 'object') or exists (
      select from tasker.named_tasks n join tasker.task_namespaces ns using (namespace_id)
      where ns.name = p_plan->>'namespace' and n.name = p_plan->>'name'
        and tasker.version_order(n.version) collate "C"
          > tasker.version_order(p_plan->>'version') collate "C") then
    return;
  end if;
  perform tasker.set_limit(l.name, l.most, l.rate, l.burst) from (
    select distinct l.rule->>'name' as name, (l.rule->>'max_running')::int as most,
      (l.rule->>'rate')::float8 as rate, (l.rule->>'burst')::float8 as burst
    from jsonb_array_elements(p_plan->'steps') s,
      jsonb_array_elements(nullif(s->'limits', 'null')) as l (rule)
    where coalesce(l.rule->'max_running', 'null') <> 'null' or coalesce(l.rule->'rate', 'null') <> 'null'
    order by 1) l;
  if jsonb_typeof(p_plan->'concurrency') = 'object' then
    perform tasker.set_limit(p_plan->'concurrency'->>'name', (p_plan->'concurrency'->>'max_running')::int);
    update tasker.limit_rules r set of_tasks = true, on_limit = p_plan->'concurrency'->>'on_limit'
    where r.name = p_plan->'concurrency'->>'name'
      and (not r.of_tasks or r.on_limit <> p_plan->'concurrency'->>'on_limit');
  end if;
end
$$;

-- Sets a limit: a number of permits, or a rate with its burst. What runs above a lowered one ends by itself;
-- where a raised one has room is noted.
-- Locks: the rule.
create or replace function tasker.set_limit(p_name text, p_most int, p_rate float8 default null,
  p_burst float8 default null) returns void
language plpgsql as $$
declare
  v_rule constant int := tasker.limit_rule(p_name);
begin
  update tasker.limit_rules r set max_running = p_most, rate = p_rate, burst = p_burst,
    changed_at = tasker.now()
  where r.rule_id = v_rule and (r.max_running, r.rate, r.burst) is distinct from (p_most, p_rate, p_burst);
  if found then
    perform tasker.note_keys(array_agg(k.rule_id), array_agg(k.value), 0)
    from tasker.waiting_keys(v_rule, null, 1000) k having count(*) > 0;
  end if;
end
$$;
