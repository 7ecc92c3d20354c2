-- Resolves the arguments of pause_v1 and resume_v1: {namespace_id, target}, or {missing: ...}, or {final:
-- state} for a task that has ended. `target` is the displayed name: NS, NS/TEMPLATE, NS/TEMPLATE/STEP or the
-- task's uuid.
create or replace function tasker.pause_target(p_args jsonb) returns jsonb
language plpgsql stable as $$
declare
  v_task tasker.tasks;
  v_namespace int;
begin
  if p_args ? 'task' then
    select * into v_task from tasker.tasks t where t.task_uuid = (p_args->>'task')::uuid;
    return case when v_task.task_uuid is null then jsonb_build_object('missing', 'task')
                when v_task.complete then jsonb_build_object('final', v_task.state)
                else jsonb_build_object('namespace_id', v_task.namespace_id, 'target', v_task.task_uuid) end;
  end if;
  select ns.namespace_id into v_namespace from tasker.task_namespaces ns where ns.name = p_args->>'namespace';
  if v_namespace is null then
    return jsonb_build_object('missing', 'namespace');
  end if;
  if p_args ? 'template' and not exists (select from tasker.named_tasks nt
      where nt.namespace_id = v_namespace and nt.name = p_args->>'template') then
    return jsonb_build_object('missing', 'template');
  end if;
  if p_args ? 'step' and not exists (select from tasker.templates t
      join tasker.named_tasks nt using (named_task_uuid)
      join tasker.template_steps ts on ts.template_id = t.template_id
      where t.namespace_id = v_namespace and nt.name = p_args->>'template' and ts.name = p_args->>'step') then
    return jsonb_build_object('missing', 'step');
  end if;
  return jsonb_build_object('namespace_id', v_namespace,
    'target', concat_ws('/', p_args->>'namespace', p_args->>'template', p_args->>'step'));
end
$$;
