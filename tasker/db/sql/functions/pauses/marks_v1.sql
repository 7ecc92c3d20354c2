-- Continues to mark backlogged steps after a pause of a template, a step or a task began or ended that covers more than
-- one slice (tasker.mark_held). The process that paused or resumed repeats the call until there is no more; if it dies,
-- the sweeps do (repair_v1). Steps of the target do not start in the meantime, because every release checks the pauses.
-- Skips a namespace that another transaction has locked.
-- p_args: {slice (2000)}.
-- Returns: {freed: number of steps that wait for room now, more: true if there may be more}, {} if there was nothing to
--   do.
create or replace function tasker.marks_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_namespace tasker.task_namespaces;
  v_slice jsonb;
begin
  perform tasker.require_read_committed();
  select * into v_namespace from tasker.task_namespaces ns
  where ns.marks_after is not null
  order by ns.namespace_id limit 1 for no key update skip locked;
  if v_namespace.namespace_id is null then
    return '{}';
  end if;
  v_slice := tasker.mark_held(v_namespace.namespace_id, v_namespace.marks_after, 'ffffffff-ffff-ffff-ffff-ffffffffffff',
    coalesce((p_args->>'slice')::int, 2000));
  update tasker.task_namespaces ns set marks_after = (v_slice->>'last')::uuid where ns.namespace_id = v_namespace.namespace_id;
  if (v_slice->>'freed')::int > 0 then
    perform pg_notify('tasker_work', '@' || v_namespace.name);
  end if;
  return jsonb_build_object('freed', v_slice->'freed', 'more', v_slice ? 'last');
end
$$;
