-- The server and its sessions, and `tasker db report`, which reads the server's statistics and no rows of the
-- engine's tables.

-- name: sizes
-- Tables of the engine, the largest first: bytes of rows and of indexes, live and dead rows as last counted
-- by the server, time of the last vacuum.
select s.schemaname || '.' || s.relname, pg_table_size(s.relid), pg_indexes_size(s.relid),
  s.n_live_tup, s.n_dead_tup, greatest(s.last_vacuum, s.last_autovacuum)
from pg_stat_user_tables s where s.schemaname = 'tasker'
order by pg_table_size(s.relid) + pg_indexes_size(s.relid) desc, s.relname

-- name: statistics_schema
-- The schema of the extension pg_stat_statements; no row without it.
select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'pg_stat_statements'

-- name: costly
-- The statements about the engine's tables and functions that took most time in this database; {schema} is
-- the extension's.
select s.calls, s.total_exec_time, s.mean_exec_time, s.rows, regexp_replace(s.query, '\s+', ' ', 'g')
from {schema}.pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.query like '%%tasker%%'
order by s.total_exec_time desc limit %(limit)s

-- name: end_frozen
-- Ends sessions of Tasker that have waited for their client to read an answer for longer than a statement may
-- take, and counts them. Such a client is frozen; its session keeps its locks, and statement_timeout does not
-- apply to it.
select count(*) filter (where pg_catalog.pg_terminate_backend(a.pid))::int
from pg_catalog.pg_stat_activity a
where a.datname = current_database() and a.usename = current_user and a.application_name like 'tasker%%'
  and a.state = 'active' and a.wait_event = 'ClientWrite'
  and a.query_start < pg_catalog.clock_timestamp()
    - coalesce(nullif(current_setting('statement_timeout')::interval, interval '0'), interval '30 seconds')

-- name: capacity
-- Connections: allowed by the server, reserved from ordinary roles, in use; and the live processes of the
--   fleet.
select current_setting('max_connections')::int,
  current_setting('superuser_reserved_connections')::int
    + coalesce(current_setting('reserved_connections', true)::int, 0),
  (select coalesce(sum(d.numbackends), 0)::int from pg_catalog.pg_stat_database d),
  (select count(*)::int from tasker.workers w where w.stopped_at is null and w.lease_until > tasker.now())

-- name: ours
-- Connections of the processes and clients of a fleet.
select count(*)::int from pg_catalog.pg_stat_activity a
where a.datname = current_database() and a.application_name like 'tasker%%'

-- name: upkeep
-- True if the server vacuums and analyzes tables automatically.
select current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean
