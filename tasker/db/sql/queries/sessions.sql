-- Sessions of the server, of Tasker and all.

-- name: end_frozen
-- Ends sessions of Tasker that have waited for their client to read an answer for longer than a statement may take, and
-- counts them. Such a client is frozen; its session keeps its locks, and statement_timeout does not apply to it.
select count(*) filter (where pg_catalog.pg_terminate_backend(a.pid))::int
from pg_catalog.pg_stat_activity a
where a.datname = current_database() and a.usename = current_user and a.application_name like 'tasker%%'
  and a.state = 'active' and a.wait_event = 'ClientWrite'
  and a.query_start < pg_catalog.clock_timestamp()
    - coalesce(nullif(current_setting('statement_timeout')::interval, interval '0'), interval '30 seconds')

-- name: capacity
-- Connections: allowed by the server, reserved from ordinary roles, in use; and the live processes of the fleet.
select current_setting('max_connections')::int,
  current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0),
  (select coalesce(sum(d.numbackends), 0)::int from pg_catalog.pg_stat_database d),
  (select count(*)::int from tasker.workers w where w.stopped_at is null and w.lease_until > tasker.now())

-- name: ours
-- Connections of the processes and clients of a fleet.
select count(*)::int from pg_catalog.pg_stat_activity a
where a.datname = current_database() and a.application_name like 'tasker%%'

-- name: upkeep
-- True if the server vacuums and analyzes tables automatically.
select current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean
