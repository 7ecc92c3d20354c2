-- Ends a pause. What nothing else holds waits for room in the queue from now on, and is released with the next claim
-- (tasker.releasable). Deleting the pause waits for everybody who is holding steps because of it (tasker.paused_of).
-- p_args: as pause_v1. Answer: {resumed: true, held: how many steps it held}, {resumed: false} when it was not paused, with `missing` as in
-- pause_v1 when there is nothing of that name.
create or replace function tasker.resume_v1(p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_pause tasker.pauses;
  v_namespace text;
  v_held int;
begin
  perform tasker.require_read_committed();
  delete from tasker.pauses p using tasker.task_namespaces ns
  where ns.namespace_id = p.namespace_id and p.task_uuid is not distinct from (p_args->>'task')::uuid
    and (p_args ? 'task' or ns.name = p_args->>'namespace' and p.template is not distinct from p_args->>'template'
      and p.step is not distinct from p_args->>'step')
  returning p.* into v_pause;
  if v_pause.pause_id is null then
    return jsonb_build_object('resumed', false)
      || jsonb_strip_nulls(jsonb_build_object('missing', tasker.pause_target(p_args)->>'missing'));
  end if;
  select ns.name into v_namespace from tasker.task_namespaces ns where ns.namespace_id = v_pause.namespace_id;
  insert into tasker.pause_log (action, target, actor, reason, created_at)
  values ('resume', coalesce(v_pause.task_uuid::text, concat_ws('/', v_namespace, v_pause.template, v_pause.step)),
    p_args->>'actor', p_args->>'reason', tasker.now());

  update tasker.ready_backlog b set paused = false
  from tasker.workflow_steps s
  where b.namespace_id = v_pause.namespace_id and b.paused and s.workflow_step_uuid = b.workflow_step_uuid
    and not exists (select from tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid));
  get diagnostics v_held = row_count;
  perform pg_notify('tasker_work', '@' || v_namespace);
  return jsonb_build_object('resumed', true, 'held', v_held);
end
$$;
