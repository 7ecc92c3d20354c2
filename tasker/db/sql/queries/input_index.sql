-- The index of inputs (db/input_index.py), which an operator makes where tasks are looked for by fields of them.

-- name: state
-- Whether it is complete; no row where there is none.
select i.indisvalid from pg_index i where i.indexrelid = to_regclass('tasker.task_details_inputs')

-- name: drop
drop index concurrently if exists tasker.task_details_inputs

-- name: create
-- Of paths and values together, hashed: nothing else is asked, and no value is too long for it.
create index concurrently task_details_inputs on tasker.task_details using gin (context jsonb_path_ops)
