-- True for a step paused by less than its namespace: by its template, its step or its task. Backlogged steps are marked
-- by it (ready_backlog.paused), so that they are not in the way of others.
create or replace function tasker.narrowly_paused(p_namespace int, p_template int, p_ordinal int, p_task uuid) returns boolean
language sql stable as $$
  select exists (select from tasker.pauses_of(p_namespace, p_template, p_ordinal, p_task) p
    where num_nonnulls(p.template, p.task_uuid) > 0)
$$;
