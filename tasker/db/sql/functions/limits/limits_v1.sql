-- The limits with what runs and waits under them, by name: those that are in use, and those that have a
-- number. Steps are counted to 10,000 for each limit, and to 1,000 for each key.
-- p_args: {name (null: all), limits, keys: maximum numbers}.
-- Returns: {limits: [{name, most: number of permits of each key, null without a limit; rate: attempts per
--   second, burst, changed_at, declared_at: of a configuration, templates: the first 20 that name a limit
--   of a configuration, running, waiting, keys: [{value, running, waiting, since: when the longest
--   running one got its permit}] of those for which steps wait, and of others up to that number, more_keys:
--   true if there may be more}], more: true if there are more limits}.
create or replace function tasker.limits_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with rules as materialized (
    select r.* from tasker.limit_rules r
    where (p_args->>'name' is null or r.name = p_args->>'name')
      and (coalesce(r.max_running, r.rate) is not null
      or exists (select from tasker.limit_permits p where p.rule_id = r.rule_id))
    order by r.name limit tasker.required(p_args, 'limits')::int + 1
  ), keys as materialized (
    select r.rule_id, k.value,
      row_number() over (partition by r.rule_id order by k.waits desc, k.value) as nth
    from rules r cross join lateral (
      select w.value, true as waits
      from tasker.waiting_keys(r.rule_id, null, tasker.required(p_args, 'keys')::int + 1) w
      where w.rule_id = r.rule_id
      union
      select distinct p.value,
        exists (select from tasker.limit_waiters w where w.rule_id = r.rule_id and w.value = p.value)
      from (select x.value from tasker.limit_permits x where x.rule_id = r.rule_id
        order by x.value limit 1000) p) k
  )
  select jsonb_build_object('limits', (
    select coalesce(jsonb_agg(jsonb_build_object('name', r.name, 'most', r.max_running, 'rate', r.rate,
      'burst', r.burst, 'changed_at', r.changed_at, 'declared_at', r.declared_at,
      'templates', case when r.declared_at is null then '[]' else tasker.templates_of_limit(r.rule_id) end,
      'running', (select count(*)
        from (select from tasker.limit_permits p where p.rule_id = r.rule_id limit 10000) p),
      'waiting', (select count(*)
        from (select from tasker.limit_waiters w where w.rule_id = r.rule_id limit 10000) w),
      'keys', (select coalesce(jsonb_agg(jsonb_build_object('value', k.value,
          'running', (select count(*) from (select from tasker.limit_permits p
              where p.rule_id = k.rule_id and p.value = k.value limit 1000) p),
          'waiting', (select count(*) from (select from tasker.limit_waiters w
              where w.rule_id = k.rule_id and w.value = k.value limit 1000) w),
          'since', (select min(p.granted_at) from tasker.limit_permits p
            where p.rule_id = k.rule_id and p.value = k.value))
          order by k.nth), '[]')
        from keys k where k.rule_id = r.rule_id and k.nth <= tasker.required(p_args, 'keys')::int),
      'more_keys', exists (select from keys k
        where k.rule_id = r.rule_id and k.nth > tasker.required(p_args, 'keys')::int))
      order by r.name), '[]')
    from (select * from rules order by name limit tasker.required(p_args, 'limits')::int) r),
    'more', (select count(*) from rules) > tasker.required(p_args, 'limits')::int)
$$;

-- The first 20 templates whose registered versions name a limit, by namespace and name.
create or replace function tasker.templates_of_limit(p_rule int) returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(x.name order by x.name), '[]') from (
    select distinct ns.name || '/' || n.name as name
    from tasker.named_tasks n join tasker.task_namespaces ns using (namespace_id)
    where exists (select from tasker.template_limits l
      where l.template_id = n.template_id and l.rule_id = p_rule)
    order by 1 limit 20) x
$$;
