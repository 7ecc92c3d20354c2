-- Updates the first slice of backlogged steps after a pause of a template, a step or a task (p_args.task) began or
-- ended; tasker.marks_v1 continues with the rest. The caller has locked the namespace.
-- Returns: {freed, more}.
create or replace function tasker.begin_marks(p_namespace int, p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_task constant uuid := (p_args->>'task')::uuid;
  v_slice constant jsonb := tasker.mark_held(p_namespace, coalesce(v_task, '00000000-0000-0000-0000-000000000000'),
    coalesce(tasker.step_uuid(v_task, 16777215), 'ffffffff-ffff-ffff-ffff-ffffffffffff'), coalesce((p_args->>'slice')::int, 2000));
begin
  if v_slice ? 'last' then   -- if two passes overlap, the one behind does the work of both
    update tasker.task_namespaces ns set marks_after = least(ns.marks_after, (v_slice->>'last')::uuid)
    where ns.namespace_id = p_namespace;
  end if;
  return jsonb_build_object('freed', v_slice->'freed', 'more', v_slice ? 'last');
end
$$;
