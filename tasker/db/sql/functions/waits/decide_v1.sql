-- A person approves or rejects a step that waits for persons. The vote that decides ends the step, in the
-- same transaction. A second vote of a person, and a vote after the end, change nothing.
-- Locks: task, then step, then as advance_v1.
-- p_args: as advance_v1 without items; task, step (its name), token (null: of the wait that is open), by,
--   permissions (of the person, see may_decide), decision (approved or rejected), form, comment, via, proof,
--   planned (the items of a failure after which the task goes on, see failure_writes)
-- Returns: as advance_v1, and one of missing, forbidden, over, voted (each true: nothing was written; the
--   last two with `approval`, see approval_state), replan (the item of a failure that has no plan, or an old
--   one: nothing was written), counted; with counted also approval, and ended: whether the step has ended.
create or replace function tasker.decide_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_task constant uuid := (p_args->>'task')::uuid;
  v_by constant text := p_args->>'by';
  v_step tasker.workflow_steps;
  v_wait tasker.step_waits;
  v_plan jsonb;
  v_votes jsonb;
  v_approved boolean;   -- what the step ends as; null: it goes on
  v_item jsonb;
  v_answer jsonb;
  v_verdict text;
begin
  perform tasker.require_read_committed();
  perform from tasker.tasks t where t.task_uuid = v_task for no key update;
  select s.* into v_step from tasker.workflow_steps s
  where s.task_uuid = v_task and s.name = p_args->>'step' for no key update;
  select w.* into v_wait from tasker.step_waits w
  where w.workflow_step_uuid = v_step.workflow_step_uuid and w.kind = 'a'
    and (p_args->>'token' is null or w.token = (p_args->>'token')::bigint)
  order by w.token desc limit 1;
  if v_wait.workflow_step_uuid is null then
    return '{"missing": true}';
  end if;
  if not tasker.may_decide(v_wait.approvers, v_by, p_args->'permissions',
      (select n.name from tasker.task_namespaces n where n.namespace_id = v_step.namespace_id)) then
    return '{"forbidden": true}';
  end if;
  if exists (select from tasker.approval_votes v where v.workflow_step_uuid = v_wait.workflow_step_uuid
      and v.token = v_wait.token and v.subject = v_by) then
    return jsonb_build_object('voted', true, 'approval', tasker.approval_state(v_wait));
  end if;
  if v_wait.ended_at is not null or v_wait.token <> v_step.claim_token then
    return jsonb_build_object('over', true, 'approval', tasker.approval_state(v_wait));
  end if;

  insert into tasker.approval_votes (workflow_step_uuid, token, subject, task_uuid, decision, form, comment,
    via, proof, voted_at)
  values (v_wait.workflow_step_uuid, v_wait.token, v_by, v_task, p_args->>'decision',
    coalesce(p_args->'form', '{}'), coalesce(p_args->>'comment', ''), p_args->>'via', p_args->>'proof',
    v_now);
  select ts.wait into v_plan from tasker.template_steps ts
  where ts.template_id = v_step.template_id and ts.ordinal = v_step.ordinal;
  select case
    when count(*) filter (where v.decision = 'approved') >= (v_plan->>'quorum')::int then true
    when count(*) filter (where v.decision = 'rejected')
      >= case v_plan->>'reject' when 'quorum' then (v_plan->>'quorum')::int else 1 end then false end
  into v_approved from tasker.approval_votes v
  where v.workflow_step_uuid = v_wait.workflow_step_uuid and v.token = v_wait.token;
  if v_approved is null then
    return jsonb_build_object('counted', true, 'ended', false, 'approval', tasker.approval_state(v_wait));
  end if;

  v_votes := tasker.votes_of(v_wait.workflow_step_uuid, v_wait.token);
  v_item := jsonb_build_object('s', v_step.workflow_step_uuid, 't', v_task, 'k', v_wait.token,
    'n', jsonb_build_object('wait', case when v_approved then 'approved' else 'rejected' end,
      'waited_until', v_now))
    || case when v_approved or v_plan->>'on_reject' <> 'fail'
    then jsonb_build_object('kind', 'ok', 'r', jsonb_build_object('approved', v_approved, 'by', v_by,
      'form', coalesce(p_args->'form', '{}'), 'comment', coalesce(p_args->>'comment', ''), 'votes', v_votes))
    else jsonb_build_object('kind', 'fail', 'e', jsonb_build_object('error_type', 'rejected',
      'retryable', false, 'attempt', v_step.attempts,
      'fingerprint', left(md5('rejected ' || v_step.template_id || ':' || v_step.ordinal), 16),
      'message', 'rejected by ' || v_by || coalesce(': ' || nullif(p_args->>'comment', ''), ''))) end;
  v_answer := tasker.advance_v1(p_args
    - '{task,step,token,by,permissions,decision,form,comment,via,proof,planned}'::text[]
    || jsonb_build_object('events', true, 'grants', false)
    || case when v_item->>'kind' = 'fail' and p_args ? 'planned' then jsonb_build_object('atomic', true,
      'items', jsonb_build_array(p_args->'planned'->0 || v_item) || (p_args->'planned') - 0)
      else jsonb_build_object('items', jsonb_build_array(v_item)) end);
  v_verdict := v_answer->'verdicts'->>v_step.workflow_step_uuid::text;
  if v_verdict is not null then
    delete from tasker.approval_votes v where v.workflow_step_uuid = v_wait.workflow_step_uuid
      and v.token = v_wait.token and v.subject = v_by;
    return case when v_verdict = 'replan' then jsonb_build_object('replan', v_item)
      else jsonb_build_object('over', true, 'approval', tasker.approval_state(v_wait)) end;
  end if;
  select w.* into v_wait from tasker.step_waits w where w.workflow_step_uuid = v_wait.workflow_step_uuid
    and w.token = v_wait.token and w.nth = v_wait.nth;
  return v_answer || jsonb_build_object('counted', true, 'ended', true,
    'approval', tasker.approval_state(v_wait));
end
$$;

-- True if somebody of this name is one of the approvers, or has a permission of theirs in the namespace.
-- p_permissions: [{p permission (null: every), ns namespace (null: every)}]; null: all permissions
create or replace function tasker.may_decide(p_approvers text[], p_by text, p_permissions jsonb,
  p_namespace text) returns boolean
language sql immutable parallel safe as $$
  select '*' = any (p_approvers) or 's:' || p_by = any (p_approvers)
    or exists (select from unnest(p_approvers) a where a like 'p:%'
      and (coalesce(p_permissions, 'null') = 'null' or exists (select
        from jsonb_array_elements(p_permissions) g where coalesce(g->>'p', substr(a, 3)) = substr(a, 3)
          and coalesce(g->>'ns', p_namespace) = p_namespace)))
$$;

-- What has become of an approval: {outcome (null: it is open), ended_at, votes}.
create or replace function tasker.approval_state(p_wait tasker.step_waits) returns jsonb
language sql stable as $$
  select jsonb_build_object('outcome', p_wait.outcome, 'ended_at', p_wait.ended_at,
    'votes', tasker.votes_of(p_wait.workflow_step_uuid, p_wait.token))
$$;

-- The votes of an approval in their order.
create or replace function tasker.votes_of(p_step uuid, p_token bigint) returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(jsonb_build_object('by', v.subject, 'decision', v.decision, 'form', v.form,
    'comment', v.comment, 'via', v.via, 'at', v.voted_at) order by v.voted_at, v.subject), '[]')
  from tasker.approval_votes v where v.workflow_step_uuid = p_step and v.token = p_token
$$;
