-- Stores the limits of a process's configuration, unless those of a newer file are stored. So the newest file
-- wins while a fleet is restarted with it, in whatever order the processes start. Of two files of the same
-- time, the one that is stored last wins. A limit that is in no configuration any more keeps its numbers.
-- Locks: the rules, in the order of their names; buckets (skips); worker.
-- p_args: {limits: [{name, concurrency, rate: attempts per second, burst}], changed_at: when the file was
--   changed; null: now, worker: the registered process whose entry shows them, if any}.
-- Returns: {differing: [those of `limits` that have other numbers in a newer file, with its numbers]}.
create or replace function tasker.declare_limits_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  -- a clock that was wrong must not outlast the next file
  v_at constant timestamptz := least(coalesce((p_args->>'changed_at')::timestamptz, tasker.now()),
    tasker.now());
  v_limit record;
  v_rule tasker.limit_rules;
  v_differing jsonb := '[]';
  v_rated int[] := '{}';
  v_factors float8[] := '{}';
begin
  for v_limit in
    select l.* from jsonb_to_recordset(p_args->'limits')
      as l (name text, concurrency int, rate float8, burst float8) order by l.name collate "C"
  loop
    perform tasker.limit_rule(v_limit.name);
    select * into v_rule from tasker.limit_rules r where r.name = v_limit.name for no key update;
    if v_rule.declared_at > v_at then
      if (v_rule.max_running, v_rule.rate, v_rule.burst)
          is distinct from (v_limit.concurrency, v_limit.rate, v_limit.burst) then
        v_differing := v_differing || jsonb_build_object('name', v_rule.name,
          'concurrency', v_rule.max_running, 'rate', v_rule.rate, 'burst', v_rule.burst);
      end if;
      continue;
    end if;
    update tasker.limit_rules r set declared_at = v_at
    where r.rule_id = v_rule.rule_id and r.declared_at is distinct from v_at;
    perform tasker.set_limit(v_limit.name, v_limit.concurrency, v_limit.rate, v_limit.burst);
    if v_rule.rate <> v_limit.rate then
      v_rated := v_rated || v_rule.rule_id;
      v_factors := v_factors || v_rule.rate / v_limit.rate;
    end if;
  end loop;

  -- The number of used tokens stays: with a higher rate they are refilled sooner.
  update tasker.limit_buckets b set full_at = tasker.now() + (b.full_at - tasker.now()) * c.factor
  from unnest(v_rated, v_factors) as c (rule_id, factor)
  where b.rule_id = c.rule_id and b.full_at > tasker.now()
    and b.ctid = any (array(select x.ctid from tasker.limit_buckets x where x.rule_id = any (v_rated)
      for update skip locked));
  update tasker.workers w set limits = p_args->'limits' where w.worker_uuid = (p_args->>'worker')::uuid;
  return jsonb_build_object('differing', v_differing);
end
$$;

-- The limits that steps of a compiled template name, and no configuration declares: those without numbers of
-- their own.
create or replace function tasker.unknown_limits(p_plan jsonb) returns text[]
language sql stable as $$
  select array(select distinct l.rule->>'name'
    from jsonb_array_elements(p_plan->'steps') s,
      jsonb_array_elements(nullif(s->'limits', 'null')) as l (rule)
    where coalesce(l.rule->'max_running', 'null') = 'null' and coalesce(l.rule->'rate', 'null') = 'null'
      and not exists (select from tasker.limit_rules r
        where r.name = l.rule->>'name' and r.declared_at is not null)
    order by 1)
$$;
