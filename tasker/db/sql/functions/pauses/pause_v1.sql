-- Pauses a namespace, or of it one template, one step of a template, one task: what runs goes on, nothing else of it
-- starts until resume_v1. Enqueued steps are put aside when they are claimed (tasker.put_aside). Locks the namespace
-- (pauses of it begin and end one after the other), then the held steps ORDER BY workflow_step_uuid.
-- p_args: {namespace, template, step, task, actor, reason}; with `task` the namespace is the task's.
-- Answer: {paused: true}, {paused: false} when it is paused already, or {missing: namespace|template|step|task}, {final: state}.
create or replace function tasker.pause_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_found jsonb := tasker.pause_target(p_args);
  v_namespace constant int := (v_found->>'namespace_id')::int;
begin
  perform tasker.require_read_committed();
  if v_namespace is null then
    return v_found;
  end if;
  perform from tasker.task_namespaces ns where ns.namespace_id = v_namespace for no key update;
  insert into tasker.pauses (namespace_id, template, step, task_uuid, actor, reason, paused_at)
  values (v_namespace, p_args->>'template', p_args->>'step', (p_args->>'task')::uuid, p_args->>'actor',
    p_args->>'reason', v_now)
  on conflict do nothing;
  if not found then
    return jsonb_build_object('paused', false);
  end if;
  insert into tasker.pause_log (action, target, actor, reason, created_at)
  values ('pause', v_found->>'target', p_args->>'actor', p_args->>'reason', v_now);

  with stopped as materialized (
    select b.workflow_step_uuid from tasker.ready_backlog b
    join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
    where b.namespace_id = v_namespace and not b.paused
      and exists (select from tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid))
    order by b.workflow_step_uuid for no key update of b
  )
  update tasker.ready_backlog b set paused = true from stopped s where b.workflow_step_uuid = s.workflow_step_uuid;
  return jsonb_build_object('paused', true);
end
$$;
