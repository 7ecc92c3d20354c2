-- Stores that messages for steps were sent again; the next sweep waits twice as long. Counts the repair. With
-- tokens, a step that was claimed since it was found is skipped, even if it is enqueued again: then it has a
-- message of its own.
-- Locks: steps.
-- p_args: {steps: [uuid...], tokens: {step: token}}.
create or replace function tasker.wakeups_sent_v1(p_args jsonb) returns jsonb
language sql volatile
set search_path to pg_catalog, pg_temp
as $$
  with hinted as materialized (
    select s.workflow_step_uuid from tasker.workflow_steps s
    where s.workflow_step_uuid = any (array(select jsonb_array_elements_text(p_args->'steps')::uuid))
      and s.state = 'enqueued'
      and (p_args->'tokens' is null
        or (p_args->'tokens'->>s.workflow_step_uuid::text)::bigint = s.claim_token)
    order by s.workflow_step_uuid for no key update
  ), done as (
    update tasker.workflow_steps s set hinted_at = tasker.now(), hint_count = least(s.hint_count, 1000000) + 1
    from hinted h where s.workflow_step_uuid = h.workflow_step_uuid
    returning s.workflow_step_uuid, s.task_uuid, s.namespace_id
  )
  select jsonb_strip_nulls(
    jsonb_build_object('send', (select jsonb_agg(jsonb_build_object('namespace', ns.name,
    'step', d.workflow_step_uuid, 'task', d.task_uuid)) from done d
join tasker.task_namespaces ns using (namespace_id))))
$$;
