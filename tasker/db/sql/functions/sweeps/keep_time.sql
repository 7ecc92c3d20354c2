-- Returns whether the caller is the timekeeper: the one process that watches the timers for all. It is, if it
-- was and has called within `p_turn_ms`, or if nobody else has; a turn in the future is from before the clock
-- was set back. The row is written a few times in each turn. Null without `p_turn_ms`: the caller does not
-- take part.
-- Locks: the row of the turn, without waiting.
create or replace function tasker.keep_time(p_worker uuid, p_turn_ms numeric) returns boolean
language plpgsql as $$
declare
  v_now constant timestamptz := tasker.now();
  v_turn constant interval := tasker.ms(p_turn_ms);
  v_last tasker.turns;
begin
  if p_turn_ms is null then
    return null;
  end if;
  select * into v_last from tasker.turns t where t.kind = 'timers';
  if v_last.holder = p_worker and v_last.taken_at between v_now - v_turn / 4 and v_now then
    return true;
  elsif v_last.holder <> p_worker and v_last.taken_at > v_now - v_turn and v_last.taken_at <= v_now then
    return false;
  elsif v_last.kind is null then
    insert into tasker.turns (kind, taken_at, holder) values ('timers', v_now, p_worker)
      on conflict (kind) do nothing;
    return found;
  end if;
  update tasker.turns t set taken_at = v_now, holder = p_worker
  where t.kind = (select x.kind from tasker.turns x where x.kind = 'timers' and x.taken_at = v_last.taken_at
    for update skip locked);
  return found;
end
$$;
