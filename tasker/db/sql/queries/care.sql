-- Queries of `tasker db report`. They change nothing and read no rows of the engine's tables, only the server's
-- statistics.

-- name: sizes
-- Tables of the engine, the largest first: bytes of rows and of indexes, live and dead rows as last counted by the
-- server, time of the last vacuum.
select s.schemaname || '.' || s.relname, pg_table_size(s.relid), pg_indexes_size(s.relid), s.n_live_tup, s.n_dead_tup,
  greatest(s.last_vacuum, s.last_autovacuum)
from pg_stat_user_tables s where s.schemaname = 'tasker'
order by pg_table_size(s.relid) + pg_indexes_size(s.relid) desc, s.relname

-- name: statistics_schema
-- The schema of the extension pg_stat_statements; no row without it.
select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'pg_stat_statements'

-- name: costly
-- The statements about the engine's tables and functions that took most time in this database; {schema} is the
-- extension's.
select s.calls, s.total_exec_time, s.mean_exec_time, s.rows, regexp_replace(s.query, '\s+', ' ', 'g')
from {schema}.pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.query like '%%tasker%%'
order by s.total_exec_time desc limit %(limit)s
