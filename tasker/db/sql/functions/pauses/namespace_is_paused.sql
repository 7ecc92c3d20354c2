-- True while a whole namespace is paused. That is one row: the backlogged steps carry no mark for it.
create or replace function tasker.namespace_is_paused(p_namespace int) returns boolean
language sql stable as $$
  select exists (select from tasker.pauses p
    where p.namespace_id = p_namespace and p.template is null and p.step is null and p.task_uuid is null)
$$;
