-- The pauses of a step: of its namespace, its template, its step in the template, its task. For a step that is not
-- created yet p_task is null.
create or replace function tasker.pauses_of(p_namespace int, p_template int, p_ordinal int, p_task uuid)
returns setof tasker.pauses
language sql stable as $$
  select p.* from tasker.pauses p
  where p.namespace_id = p_namespace and (p.task_uuid is null or p.task_uuid = p_task)
    and (p.template is null or p.template = (select nt.name from tasker.templates t
      join tasker.named_tasks nt using (named_task_uuid) where t.template_id = p_template))
    and (p.step is null or p.step = (select ts.name from tasker.template_steps ts
      where ts.template_id = p_template and ts.ordinal = p_ordinal))
$$;
