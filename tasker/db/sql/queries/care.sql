-- What `tasker db report` reads. It changes nothing and reads no rows of the engine's tables: all is from the server's statistics.

-- name: sizes
-- Tables of the engine, the largest first: bytes of rows and of indexes, rows and dead ones as the server
-- last counted them, when they were last vacuumed.
select s.schemaname || '.' || s.relname, pg_table_size(s.relid), pg_indexes_size(s.relid), s.n_live_tup, s.n_dead_tup,
  greatest(s.last_vacuum, s.last_autovacuum)
from pg_stat_user_tables s where s.schemaname = 'tasker'
order by pg_table_size(s.relid) + pg_indexes_size(s.relid) desc, s.relname
