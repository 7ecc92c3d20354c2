-- Goes on with the marks of held steps where a pause of a template, a step or a task has begun or ended and held more than
-- one slice (tasker.mark_held). Whoever paused or resumed asks until there is no more; when that process dies, the sweeps do
-- (mend_v1). Until then nothing of the target starts all the same, for pauses count at every release.
-- p_args: {slice (2000)}. A namespace that somebody else is at is passed over.
-- Answer: {freed: how many wait for room now, more: true when there may be}, {} when there was nothing to do.
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
