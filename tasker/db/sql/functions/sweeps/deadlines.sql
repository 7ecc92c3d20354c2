-- Writes the timers of deadlines after tasks ended, or continued because an operator repaired one of their
-- steps. A deadline that has passed does not end a task a second time: who continues it then decides to go
-- on.
create or replace function tasker.write_deadlines(p_tasks uuid[], p_now timestamptz) returns void
language plpgsql as $$
begin
  delete from tasker.timers m
  where m.subject = any (p_tasks) and m.kind = 'd'
    and (select t.complete from tasker.tasks t where t.task_uuid = m.subject);
  insert into tasker.timers (subject, kind, due_at, task_uuid, token)
  select t.task_uuid, 'd', d.deadline_at, t.task_uuid, 0
  from tasker.tasks t join tasker.task_details d on d.task_uuid = t.task_uuid
  where t.task_uuid = any (p_tasks) and not t.complete and d.deadline_at > p_now
  on conflict (subject, kind) do nothing;
end
$$;

-- The time left until the deadline of a task, in milliseconds, for the workers that run its steps.
-- Returns: {left_ms}; {} if an operator continued the task after it.
create or replace function tasker.time_left(p_task uuid, p_deadline timestamptz) returns jsonb
language sql stable as $$
  select case
    when not exists (select from tasker.timers m where m.subject = p_task and m.kind = 'd') then '{}'
    else jsonb_build_object('left_ms', ceil(extract(epoch from p_deadline - tasker.now()) * 1000)) end
$$;

-- The time at which a step begins; -infinity if that is not before the deadline of its task: then it never
-- runs, and the timekeeper fails it at once (tasker.fail_unstartable_steps).
create or replace function tasker.begins_in_time(p_begins_at timestamptz, p_deadline timestamptz)
returns timestamptz
language sql immutable parallel safe as $$
  select case when p_begins_at >= p_deadline then '-infinity' else p_begins_at end
$$;
