-- Pauses a namespace, or in it one template, one step of a template, or one task: running steps continue, no
-- other step of the target starts until resume_v1. The pause of a task covers its child tasks. Enqueued
-- steps return to the backlog when they are claimed (tasker.hold_paused_steps). The pause of a namespace is
-- one row, however many steps wait; backlogged steps of a smaller target are marked in slices.
-- Locks: namespace, backlog. The pauses of a namespace begin and end one after the other.
-- p_args: {namespace, template, step, task, actor, reason, slice: number of marks}; with `task` the namespace
--   is the task's.
-- Returns: {paused: true, more: true while there are steps to mark (tasker.marks_v1)}, {paused: false} if it
--   is paused already, or {missing: namespace|template|step|task}, {final: state}.
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
  perform tasker.lock_paused_namespaces(v_namespace, (p_args->>'task')::uuid);
  insert into tasker.pauses (namespace_id, template, step, task_uuid, actor, reason, paused_at)
  values (v_namespace, p_args->>'template', p_args->>'step', (p_args->>'task')::uuid, p_args->>'actor',
    p_args->>'reason', v_now)
  on conflict do nothing;
  if not found then
    return jsonb_build_object('paused', false);
  end if;
  insert into tasker.pause_log (action, target, actor, reason, created_at)
  values ('pause', v_found->>'target', p_args->>'actor', p_args->>'reason', v_now);
  if not p_args ?| array['template', 'task'] then
    return jsonb_build_object('paused', true);
  end if;
  return jsonb_strip_nulls(jsonb_build_object('paused', true,
    'more', nullif(tasker.begin_marks(v_namespace, p_args)->'more', 'false')));
end
$$;
