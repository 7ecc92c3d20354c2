-- Looks at noted keys (tasker.note_keys) that were due by `p_until`: those that the caller can lock, at most
-- 1,000 notes.
-- Locks: notes (skips), then as grant_permits.
-- p_args: as advance_v1 without items.
-- Returns: as grant_permits; {} if nothing was noted.
create or replace function tasker.grant_noted(p_args jsonb, p_until timestamptz) returns jsonb
language plpgsql as $$
declare
  v_rules int[];
  v_values text[];
begin
  if not exists (select from tasker.limit_notes n where n.due_at <= p_until) then
    return '{}';
  end if;
  with noted as (
    delete from tasker.limit_notes n
    where n.ctid = any (array(select x.ctid from tasker.limit_notes x where x.due_at <= p_until
      order by x.due_at limit 1000 for update skip locked))
    returning n.rule_id, n.value
  )
  select array_agg(d.rule_id), array_agg(d.value) into v_rules, v_values
  from (select distinct n.rule_id, n.value from noted n) d;
  return case when v_rules is null then '{}' else tasker.grant_permits(v_rules, v_values, p_args) end;
end
$$;
