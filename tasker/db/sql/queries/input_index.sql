-- The index of inputs (db/input_index.py), which an operator creates to search for tasks by fields of their
-- inputs.

-- name: state
-- True if the index is complete; no row without an index.
select i.indisvalid from pg_index i where i.indexrelid = to_regclass('tasker.task_details_inputs')

-- name: drop
drop index concurrently if exists tasker.task_details_inputs

-- name: create
-- Paths and values together, hashed: no other query is needed, and no value is too long for it.
create index concurrently task_details_inputs on tasker.task_details using gin (context jsonb_path_ops)
