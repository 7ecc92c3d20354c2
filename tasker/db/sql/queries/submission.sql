-- Reads of what submissions have stored. Each query has a name and takes its parameters as %(name)s.

-- name: outcome
-- Whether a transaction is still open, and which of the tasks that it created exist: none after a rollback.
-- Both are of one moment: if the status were read after the tasks, a commit in between would look like a
-- rollback.
select not pg_catalog.pg_visible_in_snapshot(%(transaction)s::xid8, pg_catalog.pg_current_snapshot()),
  array(select t.task_uuid::text from tasker.tasks t where t.task_uuid = any (%(tasks)s::uuid[]))

-- name: callback
-- The URL to which the end of a task is posted; no row without one.
select d.callback_url from tasker.task_details d
where d.task_uuid = %(task)s::uuid and d.callback_url is not null

-- name: posts_callbacks
-- Whether a process posts the ends of tasks to their URLs, or did so within a day: the plugin `webhooks`
-- reads events in this name.
select exists (select from tasker.event_subscribers s
  where s.name = 'webhook:callbacks' and s.updated_at > tasker.now() - interval '1 day')
