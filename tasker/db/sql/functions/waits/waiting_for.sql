-- The kinds of waits of the suspended steps of a task, as the API names them: event, person, task, time.
create or replace function tasker.waiting_for(p_task uuid) returns text[]
language sql stable as $$
  select coalesce(array_agg(distinct tasker.wait_word(w.kind) order by tasker.wait_word(w.kind)), '{}')
  from tasker.step_waits w where w.task_uuid = p_task and w.ended_at is null
$$;

create or replace function tasker.wait_word(p_kind "char") returns text
language sql immutable parallel safe as $$
  select case p_kind when 'w' then 'time' when 'a' then 'person' when 'c' then 'task' else 'event' end
$$;
