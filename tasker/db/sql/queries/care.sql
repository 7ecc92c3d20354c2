-- What `tasker db report` reads. It changes nothing and reads no rows of the engine's tables: all is from the server's statistics.

-- name: sizes
-- Tables of the engine, the largest first: bytes of rows and of indexes, rows and dead ones as the server
-- last counted them, when they were last vacuumed.
select s.schemaname || '.' || s.relname, pg_table_size(s.relid), pg_indexes_size(s.relid), s.n_live_tup, s.n_dead_tup,
  greatest(s.last_vacuum, s.last_autovacuum)
from pg_stat_user_tables s where s.schemaname = 'tasker'
order by pg_table_size(s.relid) + pg_indexes_size(s.relid) desc, s.relname

-- name: statistics_schema
-- Where the extension is that counts statements; no row without it.
select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'pg_stat_statements'

-- name: costly
-- The statements about the engine's tables and functions that took most time in this database; {schema} is the extension's.
select s.calls, s.total_exec_time, s.mean_exec_time, s.rows, regexp_replace(s.query, '\s+', ' ', 'g')
from {schema}.pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.query like '%%tasker%%'
order by s.total_exec_time desc limit %(limit)s
