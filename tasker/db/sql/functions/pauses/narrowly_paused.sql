-- True for a step that a pause of less than its namespace holds: of its template, of the step, of its task. Held steps
-- are marked by it (ready_backlog.paused), so that they stand in nobody's way.
create or replace function tasker.narrowly_paused(p_namespace int, p_template int, p_ordinal int, p_task uuid) returns boolean
language sql stable as $$
  select exists (select from tasker.pauses_of(p_namespace, p_template, p_ordinal, p_task) p
    where num_nonnulls(p.template, p.task_uuid) > 0)
$$;
