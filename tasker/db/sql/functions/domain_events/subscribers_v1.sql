-- Who reads, how far each has come, how many events it has before it (as counted by positions, of which some may be skipped),
-- and for how long somebody still holds its lease. p_args: {}.
-- Answer: {subscribers: [{name, position, behind, missed, active, updated_at}]}
create or replace function tasker.subscribers_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object('subscribers', coalesce(jsonb_agg(jsonb_build_object('name', s.name, 'position', s.position,
    'behind', (select count(*) from (select from tasker.domain_events e where e.position > s.position limit 100000) q),
    'missed', s.position < (select min(e.position) - 1 from tasker.domain_events e),
    'active', s.lease_until > tasker.now(), 'updated_at', s.updated_at) order by s.name), '[]'))
  from tasker.event_subscribers s
$$;
