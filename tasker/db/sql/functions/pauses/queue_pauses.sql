-- Pauses an orchestration queue: no process takes messages from it, and sweeps ignore what waits in it, until
-- resume_queue_v1. Processes learn of it by NOTIFY, else with their next tasker.take_turn_v1. Messages taken
-- before are processed.
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

-- Ends the pause of an orchestration queue; its messages are taken at once (NOTIFY), else after the next
-- tasker.take_turn_v1 of a process.
-- p_args: {queue, actor, reason}.
-- Returns: {resumed: false} if it was not paused.
create or replace function tasker.resume_queue_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  delete from tasker.pauses p where p.queue = p_args->>'queue';
  if not found then
    return jsonb_build_object('resumed', false);
  end if;
  insert into tasker.pause_log (action, target, actor, reason, created_at)
  values ('resume', p_args->>'queue', p_args->>'actor', p_args->>'reason', tasker.now());
  perform pg_notify('tasker_queues', p_args->>'queue');
  return jsonb_build_object('resumed', true);
end
$$;

-- The orchestration queues that are paused.
-- p_args: {}.
-- Returns: {paused_queues: [name...]}.
create or replace function tasker.paused_queues_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('paused_queues', coalesce(jsonb_agg(p.queue order by p.queue), '[]'))
  from tasker.pauses p where p.queue is not null
$$;

-- The time since which messages of an orchestration queue are taken: infinity while it is paused, the end of
-- its last pause, null if there never was one.
create or replace function tasker.queue_open_since(p_queue text) returns timestamptz
language sql stable as $$
  select case when exists (select from tasker.pauses p where p.queue = p_queue) then 'infinity'
    else (select max(l.created_at) from tasker.pause_log l
      where l.target = p_queue and l.action = 'resume') end
$$;
