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
