-- Reading the log records of attempts. Each query has a name and takes its parameters as %(name)s.

-- name: logs
-- The log lines and printed output of the handlers of a task, by time, after a position or a moment. `step`
-- is a name, a UUID, or the name of a batch worker in the template; the delay until a line is stored is not
-- known.
select l.logged_at, s.name, l.workflow_step_uuid::text, l.claim_token, l.attempt, l.line, l.level, l.logger,
  l.message, l.fields
from tasker.step_logs l
join tasker.workflow_steps s on s.workflow_step_uuid = l.workflow_step_uuid
join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
where l.task_uuid = %(task)s
  and l.logged_at >= coalesce(%(at)s::timestamptz, %(since)s::timestamptz, '-infinity')
  and (%(at)s::timestamptz is null or (l.logged_at, l.workflow_step_uuid, l.claim_token, l.line)
    > (%(at)s::timestamptz, %(behind)s::uuid, %(token)s::bigint, %(line)s::int))
  and (%(step)s::text is null or %(step)s in (s.name, ts.name, s.workflow_step_uuid::text))
  and (%(attempt)s::int is null or l.attempt = %(attempt)s) and l.level >= %(level)s
order by l.logged_at, l.workflow_step_uuid, l.claim_token, l.line limit %(limit)s
