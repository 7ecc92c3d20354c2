-- The limits of a step with the values of their keys and who has the permit: the step, or its task, whose
-- limit is the first; then in the order of the template.
create or replace function tasker.limits_of(p_step uuid, p_template int, p_ordinal int)
returns table (nth int, rule_id int, value text, subject uuid)
language sql stable rows 2 as $$
  select l.nth + l.ordinal * (l.ordinal < 0)::int, l.rule_id, case when l.key is null then ''
    else coalesce(tasker.limit_value(tasker.value_at(tasker.step_uuid(p_step, 0), l.key)), '') end,
    case when l.ordinal < 0 then tasker.step_uuid(p_step, 0) else p_step end
  from tasker.template_limits l where l.template_id = p_template and l.ordinal in (-1, p_ordinal)
$$;

-- True for a step that has to wait for a permit: of one of its limits neither it nor its task has one.
create or replace function tasker.lacks_permit(p_step uuid, p_template int, p_ordinal int) returns boolean
language sql stable as $$
  select exists (select from tasker.template_limits l
    where l.template_id = p_template and l.ordinal in (-1, p_ordinal)
    and not exists (select from tasker.limit_permits p where p.rule_id = l.rule_id
      and p.subject = case when l.ordinal < 0 then tasker.step_uuid(p_step, 0) else p_step end))
$$;

-- The value of a key as text: a string itself, other values as JSON, long ones by their hash, so that it fits
-- an index. Null if there is no value.
create or replace function tasker.limit_value(p_value jsonb) returns text
language sql immutable parallel safe as $$
  select case when t.text is null or length(t.text) <= 200 then t.text
    else 'sha256:' || encode(sha256(convert_to(t.text, 'UTF8')), 'hex') end
  from (select case when jsonb_typeof(p_value) <> 'null'
      then case jsonb_typeof(p_value) when 'string' then p_value #>> '{}' else p_value::text end end) t (text)
$$;

-- The number of permits of a key that are free: below zero after its limit was lowered; as many as an integer
-- holds without a limit. For a rate: no more than the tokens that are there, of which as many as a burst has
-- may wait for their claims, so that an outage does not save up more. The caller has the lock of the key
-- (grant_permits), and this is a later statement.
create or replace function tasker.free_permits(p_rule int, p_value text) returns int
language sql stable as $$
  select least(coalesce(r.max_running, 2147483647) - u.permits,
    case when r.rate is not null then least(greatest(floor(r.burst), 1) - u.unclaimed,
      floor(r.burst - tasker.used_tokens(p_rule, p_value) + 1e-6)) end)::int
  from tasker.limit_rules r cross join lateral (
    select count(*)::int as permits, (count(*) filter (where not p.claimed))::int as unclaimed
    from tasker.limit_permits p where p.rule_id = r.rule_id and p.value = p_value) u
  where r.rule_id = p_rule
$$;

-- True if a key lacks tokens of its rate, and nothing else: the next one comes without the end of a step.
create or replace function tasker.lacks_tokens(p_rule int, p_value text) returns boolean
language sql stable as $$
  select r.rate is not null and (r.max_running is null or (select count(*) from tasker.limit_permits p
      where p.rule_id = r.rule_id and p.value = p_value) < r.max_running)
  from tasker.limit_rules r where r.rule_id = p_rule
$$;

-- The tokens of a rate that are used now: they come back one by one.
create or replace function tasker.used_tokens(p_rule int, p_value text) returns float8
language sql stable as $$
  select greatest(0,
    coalesce((select extract(epoch from b.full_at - tasker.now())::float8 * r.rate from tasker.limit_buckets b
    join tasker.limit_rules r using (rule_id) where b.rule_id = p_rule and b.value = p_value), 0))
$$;

-- Milliseconds until a rate has the next token; 100 if it has one, which waits for the claim of another.
create or replace function tasker.next_token_ms(p_rule int, p_value text) returns float8
language sql stable as $$
  select case when t.lacking <= 0 then 100 else ceil(t.lacking / r.rate * 1000) end
  from tasker.limit_rules r
  cross join lateral (select 1 - r.burst + tasker.used_tokens(p_rule, p_value) as lacking) t
  where r.rule_id = p_rule
$$;
