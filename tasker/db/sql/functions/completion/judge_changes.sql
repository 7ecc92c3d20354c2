-- The verdict on each change of a batch, from the steps' rows. The tasks must be locked already; `p_locked`
-- are those that are. The fields of the change are returned with its verdict, so that nothing joins two
-- arrays later (which would be quadratic in the batch). A token grows when a claim ends without its own
-- result (release, reset, loss, operator action, cancel), so the results of a step still running under it are
-- refused. The worker is compared too: after a failover that lost a commit two workers may have the same
-- token. With `lock_ms` and `wait` false, steps whose rows another transaction has locked are left out, as
-- those of locked tasks are.
-- A failure after which the task goes on is only accepted with its plan (`gv`).
-- Locks: steps. In one pass.
create or replace function tasker.judge_changes(p_args jsonb, p_locked uuid[]) returns tasker.judgement
language plpgsql as $$
declare
  v_answer tasker.judgement;
  v_kept uuid[] := '{}';
begin
  if p_args ? 'lock_ms' and not coalesce((p_args->>'wait')::boolean, true) then
    v_kept := tasker.locked_steps(p_args, p_locked);
  end if;

  select array_agg(row(v.step_uuid, v.task_uuid, v.kind, v.verdict, v.state, v.path, tasker.path_end(v.path),
      tasker.kind_token(v.kind, v.token, coalesce(v.note ? 'lost', false)),
      tasker.kind_attempts(v.kind, v.attempts), v.sort_key + tasker.path_length(v.path), v.unmet,
      v.template_id, v.ordinal, v.namespace_id, v.name, v.worker_uuid,
      v.priority, v.delay_ms, v.duration_ms, v.result, v.metadata, v.error, v.note,
      v.given_settled)::tasker.judged_change),
    bool_or(v.verdict <> 'accepted'), bool_or(v.given_version is not null),
    bool_or(v.note ?| '{unserved,unreadable}'), bool_or(v.error is not null),
    bool_or(tasker.kind_drops_result(v.kind)), bool_or(v.unmet > 0),
    bool_or(tasker.step_is_to_run(tasker.path_end(v.path))),
    bool_or(tasker.step_is_timed(v.state) and not tasker.kind_runs_ahead(v.kind)
      or tasker.path_end(v.path) = 'waiting_for_retry'),
    bool_or(v.state = 'enqueued'), bool_or(v.gates & 1 <> 0),
    bool_or(v.gates & 8 <> 0 and tasker.is_suspended(v.state, v.worker_uuid)),
    bool_or(tasker.kind_runs_ahead(v.kind)), bool_or(tasker.kind_suspends(v.kind)),
    bool_or(tasker.kind_keeps_state(v.kind) and v.result is not null),
    bool_or(v.phase is not null and tasker.kind_reopens(v.kind))
  into v_answer from (
    select q.*,
      case
        when q.given_token <> q.token or q.given_worker <> q.worker_uuid
          then case q.state when 'cancelled' then 'cancelled' else 'stale' end
        when q.given_token is not null and tasker.kind_was_accepted(q.kind, q.state) then 'already_accepted'
        when q.settled is not null and tasker.kind_reopens(q.kind) then 'settled'
        when q.outcome in ('compensating', 'compensated', 'compensation_failed')
          and tasker.kind_reopens(q.kind) and not tasker.is_late(q.template_id, q.ordinal) then 'undone'
        when q.path is null then case q.state when 'cancelled' then 'cancelled' else 'stale' end
        when q.complete and not (q.task_state = 'error' and tasker.kind_reopens(q.kind)) then 'cancelled'
        when tasker.kind_needs_parents(q.kind) and q.unmet > 0 then 'stale'
        when q.given_version <> q.graph_version and not tasker.kind_runs_ahead(q.kind) then 'replan'
        when tasker.kind_settles(q.kind) and q.gates & 16 <> 0 and q.given_version is null and exists (
          select from tasker.template_steps ts where ts.template_id = q.template_id
            and ts.ordinal = q.ordinal and ts.gates & 16 <> 0) then 'replan'
        else 'accepted'
      end as verdict
    from (
      select s.workflow_step_uuid as step_uuid, s.task_uuid, s.state, s.claim_token as token, s.attempts,
        s.sort_key, s.unmet, s.template_id, s.ordinal, s.namespace_id, s.name, s.worker_uuid, t.priority,
        t.complete, t.state as task_state, t.graph_version, t.gates, t.phase,
        t.outcome, s.settled, g.settled as given_settled,
        tasker.step_path(s.state, g.kind) as path, g.kind, g.token as given_token,
        g.worker_uuid as given_worker, g.graph_version as given_version, g.delay_ms, g.duration_ms,
        g.result, g.metadata, g.error, g.note
      from tasker.requested_changes(p_args) g
      -- offset: a look-up for each; a join would compare all tasks of the batch with each other
      cross join lateral (
        select t.priority, t.complete, t.state, t.graph_version, t.gates, t.phase, t.outcome
        from tasker.tasks t
        where t.task_uuid = g.task_uuid offset 0) t
      -- found by this key alone, never by all steps of the task
      join tasker.workflow_steps s on s.workflow_step_uuid = g.step_uuid
        and s.task_uuid is not distinct from g.task_uuid
      -- is true: the locked tasks are hashed, not joined
      where (g.task_uuid in (select unnest(p_locked))) is true
        and g.step_uuid <> all (v_kept)
      order by s.workflow_step_uuid
      for no key update of s) q
    offset 0) v;   -- offset: each verdict is computed once, not for each reference to it
  return case when v_answer.ahead then tasker.refuse_ahead(p_args, v_answer) else v_answer end;
end
$$;

-- The requested changes, from the items of the arguments. Of two claims of one step the newer one counts.
-- Planned with the statement around it.
create or replace function tasker.requested_changes(p_args jsonb) returns setof tasker.given_change
language sql stable rows 10 as $$
  select distinct on (i.s) i.s, i.t, i.kind, i.k, tasker.clamped_ms(i.d), tasker.clamped_ms(i.ms), i.r, i.m,
    i.e, i.n, i.x, i.gv,
    coalesce(i.w,
      case when i.k is not null and tasker.kind_ends_claim(i.kind) then (p_args->>'worker')::uuid end), i.st
  from jsonb_to_recordset(p_args->'items') as i (s uuid, t uuid, kind text, k bigint, d numeric,
    ms numeric, r jsonb, m jsonb, e jsonb, n jsonb, x jsonb, gv int, w uuid, st "char")
  order by i.s, i.k desc nulls last
$$;
