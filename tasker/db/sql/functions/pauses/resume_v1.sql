-- Ends a pause. Steps that no other pause covers wait for room in the queue from now on, and are released
-- with the next claim (tasker.releasable).
-- Locks: namespace, pause, backlog. Of two pauses that end at the same moment the later sees the earlier one
--   gone. Deleting the pause waits for every transaction that is backlogging steps because of it
--   (tasker.paused_of).
-- p_args: as pause_v1.
-- Returns: {resumed: true, held: number of steps that may continue (at most 10,000 are counted for a
--   namespace), more: true while there are marks to remove (tasker.marks_v1)}, {resumed: false} if it was not
--   paused, with `missing` as in pause_v1 if there is nothing of that name.
create or replace function tasker.resume_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_pause tasker.pauses;
  v_namespace text;
  v_held int := 0;
  v_marks jsonb := '{}';
begin
  perform tasker.require_read_committed();
  select p.* into v_pause from tasker.pauses p join tasker.task_namespaces ns using (namespace_id)
  where p.task_uuid is not distinct from (p_args->>'task')::uuid
    and (p_args ? 'task' or ns.name = p_args->>'namespace'
      and p.template is not distinct from p_args->>'template'
      and p.step is not distinct from p_args->>'step');
  perform tasker.lock_paused_namespaces(v_pause.namespace_id, v_pause.task_uuid);
  select ns.name into v_namespace from tasker.task_namespaces ns
  where ns.namespace_id = v_pause.namespace_id;
  delete from tasker.pauses p where p.pause_id = v_pause.pause_id;
  if not found then
    return jsonb_build_object('resumed', false)
      || jsonb_strip_nulls(jsonb_build_object('missing', tasker.pause_target(p_args)->>'missing'));
  end if;
  insert into tasker.pause_log (action, target, actor, reason, created_at)
  values ('resume',
    coalesce(v_pause.task_uuid::text, concat_ws('/', v_namespace, v_pause.template, v_pause.step)),
    p_args->>'actor', p_args->>'reason', tasker.now());

  if num_nonnulls(v_pause.template, v_pause.task_uuid) > 0 then
    v_marks := tasker.begin_marks(v_pause.namespace_id, p_args);
    if not tasker.namespace_is_paused(v_pause.namespace_id) then
      v_held := v_marks->'freed';
    end if;
  else
    select count(*) into v_held from (select from tasker.ready_backlog b
      where b.namespace_id = v_pause.namespace_id and not b.paused limit 10000) b;
    perform tasker.probe_unserved(array[v_pause.namespace_id]);   -- a worker may have started meanwhile
  end if;
  perform pg_notify('tasker_work', '@' || v_namespace);
  return jsonb_strip_nulls(jsonb_build_object('resumed', true, 'held', v_held,
      'more', nullif(v_marks->'more', 'false')));
end
$$;
