-- Places some of the events that are committed, so that whoever reads finds them placed: for the sweep. p_args: {}.
-- Answer: {over: true when none is left}
create or replace function tasker.place_events_v1(p_args jsonb) returns jsonb
language sql
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('over', tasker.place_events() = 0)
$$;
