-- Submitting in transactions that are not ours. Each query is named and takes its parameters as %(name)s.

-- name: outcome
-- Whether a transaction is still open, and which of the tasks that it made are there: none after a rollback. Both are of
-- one moment: a status asked for later than the tasks were read would take a commit in between for a rollback.
select not pg_catalog.pg_visible_in_snapshot(%(transaction)s::xid8, pg_catalog.pg_current_snapshot()),
  array(select t.task_uuid::text from tasker.tasks t where t.task_uuid = any (%(tasks)s::uuid[]))
