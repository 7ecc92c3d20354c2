-- Pauses an orchestration queue: no process takes messages from it, and sweeps ignore what waits in it, until
-- resume_queue_v1. Processes learn of it by NOTIFY, else with their next tasker.take_turn_v1. Messages taken before are
-- processed.
-- p_args: {queue, actor, reason}.
-- Returns: {paused: false} if it is paused already.
create or replace function tasker.pause_queue_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
begin
  insert into tasker.pauses (queue, actor, reason, paused_at)
  values (p_args->>'queue', p_args->>'actor', p_args->>'reason', v_now)
  on conflict do nothing;
  if not found then
    return jsonb_build_object('paused', false);
  end if;
  insert into tasker.pause_log (action, target, actor, reason, created_at)
  values ('pause', p_args->>'queue', p_args->>'actor', p_args->>'reason', v_now);
  perform pg_notify('tasker_queues', p_args->>'queue');
  return jsonb_build_object('paused', true);
end
$$;
