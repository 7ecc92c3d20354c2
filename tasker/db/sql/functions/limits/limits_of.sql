-- The limits of a step with the values of their keys, in the order of the template.
create or replace function tasker.limits_of(p_step uuid, p_template int, p_ordinal int) returns table (nth int, rule_id int, value text)
language sql stable rows 2 as $$
  select l.nth, l.rule_id, case when l.key is null then ''
    else coalesce(tasker.limit_value(tasker.value_at(tasker.step_uuid(p_step, 0), l.key)), '') end
  from tasker.template_limits l where l.template_id = p_template and l.ordinal = p_ordinal
$$;

-- True for a step that has to wait for a permit: it has none of one of its limits.
create or replace function tasker.lacks_permit(p_step uuid, p_template int, p_ordinal int) returns boolean
language sql stable as $$
  select exists (select from tasker.template_limits l where l.template_id = p_template and l.ordinal = p_ordinal
    and not exists (select from tasker.limit_permits p where p.subject = p_step and p.rule_id = l.rule_id))
$$;

-- The value of a key as text: a string itself, other values as JSON, long ones by their hash, so that it fits an index.
-- Null if there is no value.
create or replace function tasker.limit_value(p_value jsonb) returns text
language sql immutable parallel safe as $$
  select case when t.text is null or length(t.text) <= 200 then t.text
    else 'sha256:' || encode(sha256(convert_to(t.text, 'UTF8')), 'hex') end
  from (select case when jsonb_typeof(p_value) <> 'null' then case jsonb_typeof(p_value) when 'string' then p_value #>> '{}' else p_value::text end end) t (text)
$$;

-- The number of permits of a key that are free: below zero after its limit was lowered; as many as an integer holds
-- without a limit. The caller has the lock of the key (grant_permits), and this is a later statement.
create or replace function tasker.free_permits(p_rule int, p_value text) returns int
language sql stable as $$
  select coalesce(r.max_running, 2147483647) - (select count(*) from tasker.limit_permits p where p.rule_id = r.rule_id and p.value = p_value)::int
  from tasker.limit_rules r where r.rule_id = p_rule
$$;
