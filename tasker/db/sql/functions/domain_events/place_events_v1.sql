-- Assigns positions to some of the committed events, so that readers find them assigned; called by the sweep.
-- p_args: {}.
-- Returns: {over: true if none is left}
create or replace function tasker.place_events_v1(p_args jsonb) returns jsonb
language sql
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('over', tasker.place_events() = 0)
$$;
