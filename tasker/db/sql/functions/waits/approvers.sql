-- Who may decide, from a part of the plan of a step that waits for persons: `s:NAME` for each person,
-- `p:WORD` for each permission; `*` if there are neither. A path leads to one name or to a list of names.
create or replace function tasker.approvers_of(p_task uuid, p_subjects jsonb, p_permissions jsonb)
returns text[]
language sql stable as $$
  select case when jsonb_typeof(p_subjects) = 'array' or jsonb_typeof(p_permissions) = 'array'
    then array(select distinct q.word from (
      select 's:' || n.name as word from jsonb_array_elements(coalesce(nullif(p_subjects, 'null'), '[]')) s
      cross join lateral tasker.names_at(p_task, s) n (name)
      union all
      select 'p:' || p from jsonb_array_elements_text(coalesce(nullif(p_permissions, 'null'), '[]')) p) q
      order by q.word)
    else array['*'] end
$$;

-- The names that a subject of a plan stands for: itself, or those at its path; none if there are none.
create or replace function tasker.names_at(p_task uuid, p_subject jsonb,
  p_judged tasker.judged_change[] default null) returns setof text
language sql stable rows 2 as $$
  select left(trim(e.name #>> '{}'), 200) from (
    select v.value as name from (select case when jsonb_typeof(p_subject) = 'object'
      then tasker.value_at(p_task, p_subject, p_judged) else p_subject end as value) v
    where jsonb_typeof(v.value) in ('string', 'number')
    union all
    select e from (select case when jsonb_typeof(p_subject) = 'object'
      then tasker.value_at(p_task, p_subject, p_judged) end as value) v
    cross join lateral jsonb_array_elements(case when jsonb_typeof(v.value) = 'array' then v.value end) e
    where jsonb_typeof(e) in ('string', 'number')
    limit 200) e
  where trim(e.name #>> '{}') <> ''
$$;

-- Writes durable events about approvals: `approval.requested`, `approval.reminder` and `approval.escalated`.
-- `number` distinguishes those of one wait. The payload names the persons who may decide and until when.
create or replace function tasker.write_approval_events(p_waits jsonb, p_now timestamptz) returns void
language sql as $$
  with written as (
    insert into tasker.domain_events (created_at, event_uuid, task_uuid, workflow_step_uuid, correlation_id,
      namespace_id, sort_key, number, attempt, name, step_name, outcome, delivery_mode, fired_by, payload)
    select p_now, tasker.uuid_v7(), s.task_uuid, s.workflow_step_uuid, d.correlation_id, s.namespace_id,
      s.sort_key, i.number, s.attempts, 'approval.' || i.word, s.name, 'success', 'durable', 'tasker',
      jsonb_strip_nulls(jsonb_build_object('task_uuid', s.task_uuid, 'step', s.name, 'namespace', ns.name,
        'template', nt.name, 'subjects', tasker.approver_names(w.approvers, 's'),
        'permissions', tasker.approver_names(w.approvers, 'p'), 'quorum', ts.wait->'quorum',
        'requested_at', w.since, 'until', w.until, 'reminder', i.reminder,
        'page', format('approvals/%s/%s', s.task_uuid, s.name)))
    from jsonb_to_recordset(p_waits) as i (s uuid, k bigint, word text, number int, reminder int)
    join tasker.workflow_steps s on s.workflow_step_uuid = i.s
    join tasker.step_waits w on w.workflow_step_uuid = i.s and w.token = i.k and w.nth = 1
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    join tasker.tasks t on t.task_uuid = s.task_uuid
    join tasker.task_details d on d.task_uuid = s.task_uuid
    join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
    join tasker.task_namespaces ns on ns.namespace_id = s.namespace_id
    returning event_id
  )
  insert into tasker.unplaced_events (event_id) select w.event_id from written w
$$;

-- The names in a list of approvers: of persons (`s`) or permissions (`p`); null: none.
create or replace function tasker.approver_names(p_approvers text[], p_kind text) returns jsonb
language sql immutable parallel safe as $$
  select jsonb_agg(substr(a, 3) order by a) from unnest(p_approvers) a where a like p_kind || ':%'
$$;

-- True for an event about an approval, as write_approval_events writes them.
create or replace function tasker.is_of_approval(p_event tasker.domain_events) returns boolean
language sql stable as $$
  select p_event.fired_by = 'tasker' and p_event.name like 'approval.%' and exists (select
    from tasker.step_waits w where w.workflow_step_uuid = p_event.workflow_step_uuid and w.kind = 'a')
$$;
