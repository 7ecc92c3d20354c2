-- Ends the pause of an orchestration queue; its messages are taken at once (NOTIFY), else after the next tasker.take_turn_v1
-- of a process.
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
