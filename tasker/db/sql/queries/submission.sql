-- Submitting in transactions that are not ours. Each query is named and takes its parameters as %(name)s.

-- name: outcome
-- Whether a transaction is still open, and which of the tasks that it made are there: none after a rollback.
select pg_catalog.pg_xact_status(%(transaction)s::xid8) is not distinct from 'in progress',
  array(select t.task_uuid::text from tasker.tasks t where t.task_uuid = any (%(tasks)s::uuid[]))
