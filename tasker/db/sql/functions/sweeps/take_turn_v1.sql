-- Grants the turn for work that one process at a time does for all (a sweep). The first caller after
-- `after_ms` since the last turn gets it, and works without a lock, so nothing is left behind if it dies:
-- others ask again. A turn in the future is from before the clock was set back. Every process calls this
-- about once per interval, and learns with it which orchestration queues are paused.
-- Locks: turn (skips).
-- p_args: {kind, after_ms}.
-- Returns: {mine: true, paused_queues: [name...]}, or {mine: false, since_ms: age of the last turn,
--   paused_queues}.
create or replace function tasker.take_turn_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_after constant interval := tasker.ms((p_args->>'after_ms')::numeric);
  v_taken timestamptz;
begin
  select t.taken_at into v_taken from tasker.turns t where t.kind = p_args->>'kind';
  if v_taken > v_now - v_after and v_taken <= v_now then
    return jsonb_build_object('mine', false, 'since_ms', round(extract(epoch from v_now - v_taken) * 1000))
      || tasker.paused_queues_v1('{}');
  end if;
  if v_taken is null then
    insert into tasker.turns (kind, taken_at) values (p_args->>'kind', v_now) on conflict (kind) do nothing;
  else
    update tasker.turns t set taken_at = v_now
    where t.kind = (select x.kind from tasker.turns x where x.kind = p_args->>'kind' and x.taken_at = v_taken
      for update skip locked);
  end if;
  return jsonb_build_object('mine', found, 'since_ms', 0) || tasker.paused_queues_v1('{}');
end
$$;
