-- The end of a write that concerns steps with limits: permits of steps that left the queue and do not run any
-- more end, and go to those that wait for their keys, in the same commit. So do free permits to steps that
-- came to wait. A permit lasts while its step is in the queue, runs, has a result to be processed, or waits
-- for room in the backlog.
-- p_claimed: slots of the caller that this write has used; p_finished: tasks that ended with it.
-- Locks: keys of limits (advisory), then as grant_permits.
-- Returns: {claims, send} of the steps that got permits; null without any.
create or replace function tasker.hand_on_permits(p_judged tasker.judged_change[],
  p_placed tasker.placed_step[], p_args jsonb, p_claimed int, p_finished jsonb) returns jsonb
language plpgsql as $$
declare
  v_begun constant uuid[] := array(select p.step_uuid from unnest(p_placed) p where p.place = 'claim');
  v_held uuid[];          -- back in the backlog, or there still
  v_paused uuid[] := '{}';
  v_rules int[];
  v_values text[];
begin
  if cardinality(v_begun) > 0 then   -- as claim_v1 does
    delete from tasker.limit_permits p using tasker.limit_rules r
    where p.subject = any (v_begun) and r.rule_id = p.rule_id and r.rate is not null
      and r.max_running is null;
    update tasker.limit_permits p set claimed = true from tasker.limit_rules r
    where p.subject = any (v_begun) and r.rule_id = p.rule_id and r.rate is not null and not p.claimed;
  end if;
  v_held := array(select p.step_uuid from unnest(p_placed) p
    where p.place = 'hold' and p.moved and not p.limited);
  if cardinality(v_held) > 0 and exists (select from tasker.pauses) then
    v_paused := tasker.paused_of(v_held);
  end if;
  with gone as (
    delete from tasker.limit_permits p
    where p.subject = any (array(select j.step_uuid from unnest(p_judged) j
        where not tasker.step_is_to_run(j.to_state))
      || v_paused || array(select f::uuid from jsonb_object_keys(p_finished) f))
    returning p.rule_id, p.value
  )
  select array_agg(k.rule_id), array_agg(k.value) into v_rules, v_values from (
    select g.rule_id, g.value from gone g
    union
    -- offset: a look-up for each, even if it was planned while few waited
    select w.rule_id, w.value from unnest(p_placed) p
    cross join lateral (select x.rule_id, x.value from tasker.limit_waiters x
      where x.workflow_step_uuid = p.step_uuid offset 0) w
    where p.limited) k;
  if v_rules is null then
    return null;
  elsif not coalesce((p_args->>'grants')::boolean, true)
      -- the write has locked rows of the backlog, for which the end of a pause may wait; a grant may wait for
      -- that end
      or exists (select from tasker.pauses)
      and exists (select from unnest(p_judged) j where j.from_state = 'pending') then
    perform tasker.note_keys(v_rules, v_values, 0);
    return null;
  end if;
  return tasker.grant_permits(v_rules, v_values, p_args || jsonb_build_object('slots',
    greatest(0, coalesce((p_args->>'slots')::int, 0) - p_claimed)));
end
$$;
