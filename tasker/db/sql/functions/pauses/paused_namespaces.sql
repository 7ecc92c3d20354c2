-- The namespaces that are paused as a whole.
create or replace function tasker.paused_namespaces() returns int[]
language sql stable as $$
  select array(select p.namespace_id from tasker.pauses p
    where p.namespace_id is not null and p.template is null and p.task_uuid is null)
$$;
