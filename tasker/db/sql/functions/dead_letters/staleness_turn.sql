-- True for the one process that searches in this interval, as in take_turn_v1; it stores its limits for the
-- views, which would not know them without a search, or with one that only reads.
-- Locks: turn (skips), staleness settings.
create or replace function tasker.staleness_turn(p_every interval, p_settings jsonb, p_now timestamptz)
returns boolean
language plpgsql as $$
declare
  v_mine boolean;
begin
  if exists (select from tasker.turns x
    where x.kind = 'staleness' and x.taken_at > p_now - p_every and x.taken_at <= p_now) then
    return false;   -- usual case: nothing is written, and the rest is not even planned
  end if;
  insert into tasker.turns (kind, taken_at) values ('staleness', '-infinity') on conflict (kind) do nothing;
  update tasker.turns t set taken_at = p_now
  where t.kind = (select x.kind from tasker.turns x where x.kind = 'staleness'
    and (x.taken_at <= p_now - p_every or x.taken_at > p_now) for update skip locked);
  v_mine := found;
  if v_mine and p_settings is not null then
    update tasker.staleness_settings s set
      waiting_for_dependencies_minutes = n.waiting_for_dependencies_minutes,
      waiting_for_retry_minutes = n.waiting_for_retry_minutes,
      steps_in_process_minutes = n.steps_in_process_minutes,
      task_max_lifetime_minutes = n.task_max_lifetime_minutes,
      checkpoint_stall_minutes = n.checkpoint_stall_minutes
    from jsonb_populate_record(null::tasker.staleness_settings, '{"one": true}' || p_settings) n
    where s is distinct from n;
  end if;
  return v_mine;
end
$$;
