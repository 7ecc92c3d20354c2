-- Pauses a namespace, or of it one template, one step of a template, one task: what runs goes on, nothing else of it
-- starts until resume_v1. Enqueued steps are put aside when they are claimed (tasker.put_aside).
-- p_args: {namespace, template, step, task, actor, reason}; with `task` the namespace is the task's.
-- Answer: {paused: true}, {paused: false} when it is paused already, or {missing: namespace|template|step|task}, {final: state}.
create or replace function tasker.pause_v1(p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_now constant timestamptz := tasker.now();
  v_found jsonb := tasker.pause_target(p_args);
  v_namespace constant int := (v_found->>'namespace_id')::int;
begin
  if v_namespace is null then
    return v_found;
  end if;
  insert into tasker.pauses (namespace_id, template, step, task_uuid, actor, reason, paused_at)
  values (v_namespace, p_args->>'template', p_args->>'step', (p_args->>'task')::uuid, p_args->>'actor',
    p_args->>'reason', v_now)
  on conflict do nothing;
  if not found then
    return jsonb_build_object('paused', false);
  end if;
  insert into tasker.pause_log (action, target, actor, reason, created_at)
  values ('pause', v_found->>'target', p_args->>'actor', p_args->>'reason', v_now);

  update tasker.ready_backlog b set paused = true
  from tasker.workflow_steps s
  where b.namespace_id = v_namespace and not b.paused and s.workflow_step_uuid = b.workflow_step_uuid
    and exists (select from tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid));
  return jsonb_build_object('paused', true);
end
$$;
