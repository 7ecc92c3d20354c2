-- Claims steps: steps that are `enqueued` become `in_progress` for the worker, with a new token. Any other
-- step named by a message is dead: its row has moved on. Paused steps return to the backlog
-- (tasker.hold_paused_steps), and so do unserved ones (tasker.return_unclaimable), and those that were
-- enqueued before their namespace was ordered: backlog_v1 claims the next ones by rank (`release`).
-- Locks: pauses (shared), steps, counters. No task. It waits for each step, because a step whose message was
--   taken must not be skipped.
-- p_args: {worker, steps: [uuid...], unserved: ["template:ordinal"...], timeout_ms, grace_ms, namespace_ids,
--   window, max_claim_bytes: limit for the inputs of handlers, exceeded for a first step alone, whose inputs
--   may still be too large to return (tasker.too_large), and separately for the steps' own inputs
--   (tasker.own_inputs), known: [task...]: tasks whose inputs are not returned, each: true after a claim that
--   was refused for a value of one of its steps (tasker.claim_each)}
-- Returns: claims, dead (count), verdicts {step: unknown|held}, send (steps not served here: sent again after
--   a moment), later {step: milliseconds after which its message is visible; tasker.wake_steps_v1}, the tasks
--   and ancestors' results that the claims need, once each, and `release` (see tasker.releasable).
create or replace function tasker.claim_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_worker constant uuid := (p_args->>'worker')::uuid;
  v_steps constant uuid[] := array(select jsonb_array_elements_text(p_args->'steps')::uuid);
  v_unserved constant text[] := array(select jsonb_array_elements_text(p_args->'unserved'));
  v_timeout_ms constant bigint not null := tasker.clamped_ms((p_args->>'timeout_ms')::numeric);
  v_grace_ms constant bigint not null := tasker.clamped_ms((p_args->>'grace_ms')::numeric);
  v_paused uuid[] := '{}';
  v_early uuid[] := '{}';   -- enqueued before their namespace was ordered
  v_found uuid[];
  v_lacking uuid[] := '{}';
  v_refused jsonb;
  v_heavy uuid[];
  v_max constant bigint not null := (p_args->>'max_claim_bytes')::bigint;
  v_own jsonb;
  v_claims jsonb;
  v_verdicts jsonb;
  v_aside jsonb;
  v_dead int;
begin
  perform tasker.require_read_committed();
  if cardinality(v_steps) = 0 then
    return tasker.releasable(p_args);
  end if;
  if p_args ? 'each' then
    return tasker.claim_each(p_args);
  end if;
  if exists (select from tasker.pauses) or exists (select from tasker.task_namespaces n where n.ordered
      and n.namespace_id = any (array(
        select i::int from jsonb_array_elements_text(p_args->'namespace_ids') i))) then
    v_paused := tasker.paused_of(array(select s.workflow_step_uuid from tasker.workflow_steps s
      where s.workflow_step_uuid = any (v_steps) and s.state = 'enqueued'));
    v_early := array(select s.workflow_step_uuid from tasker.workflow_steps s
      join tasker.task_namespaces n on n.namespace_id = s.namespace_id
      where s.workflow_step_uuid = any (v_steps) and s.state = 'enqueued' and n.ordered
        and s.workflow_step_uuid <> all (v_paused));
  end if;
  select array_agg(q.step) into v_found from (
    select s.workflow_step_uuid as step from tasker.workflow_steps s
    where s.workflow_step_uuid = any (v_steps) and s.state = 'enqueued'
      and s.workflow_step_uuid <> all (v_paused) and s.workflow_step_uuid <> all (v_early)
      and (cardinality(v_unserved) = 0 or (s.template_id || ':' || s.ordinal) <> all (v_unserved))
    order by s.workflow_step_uuid for no key update) q;

  if cardinality(v_unserved) > 0 then
    v_lacking := array(select s.workflow_step_uuid from tasker.workflow_steps s
      where s.workflow_step_uuid = any (v_steps) and s.state = 'enqueued'
        and s.workflow_step_uuid <> all (v_paused) and s.workflow_step_uuid <> all (v_early)
        and (s.template_id || ':' || s.ordinal) = any (v_unserved));
    if cardinality(v_lacking) > 0 then
      v_refused := tasker.return_unclaimable(v_lacking, p_args);
    end if;
  end if;

  if cardinality(v_found) > 1 then
    v_heavy := tasker.cut_by_bytes(v_found, v_max);
    if v_heavy is not null then   -- they stay enqueued and are sent again for the next claim
      v_found := array(select f from unnest(v_found) f where f <> all (v_heavy));
      v_refused := coalesce(v_refused, '[]') || (
        select jsonb_agg(jsonb_build_object('namespace', ns.name, 'step', s.workflow_step_uuid,
              'task', s.task_uuid))
        from tasker.workflow_steps s join tasker.task_namespaces ns using (namespace_id)
        where s.workflow_step_uuid = any (v_heavy));
    end if;
  end if;

  v_own := tasker.own_inputs(v_found, v_max);
  with claimed as (
    update tasker.workflow_steps s set state = tasker.place_state('claim'),
      claim_token = tasker.place_token('claim', s.claim_token),
      attempts = tasker.place_attempts('claim', s.attempts),
      sort_key = s.sort_key + tasker.path_length(tasker.placed_path(tasker.path_code('enqueued'), 'claim')),
      worker_uuid = v_worker, started_at = v_now, updated_at = v_now,
      deadline_at = tasker.deadline(v_now, coalesce((select ts.timeout_ms from tasker.template_steps ts
        where ts.template_id = s.template_id and ts.ordinal = s.ordinal), v_timeout_ms), v_grace_ms)
    where s.workflow_step_uuid = any (v_found)
    returning s.*
  ), logged as (
    insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token,
      worker_uuid, created_at)
    select c.workflow_step_uuid, tasker.placed_path(tasker.path_code('enqueued'), 'claim'),
      c.sort_key, c.attempts, c.claim_token, v_worker, v_now
    from claimed c
  ), begun as (   -- permits of rates
    delete from tasker.limit_permits p using claimed c, tasker.limit_rules r
    where p.subject = c.workflow_step_uuid and r.rule_id = p.rule_id and r.rate is not null
      and r.max_running is null
  ), marked as (   -- those of rules that count what runs, too
    update tasker.limit_permits p set claimed = true from claimed c, tasker.limit_rules r
    where p.subject = c.workflow_step_uuid and r.rule_id = p.rule_id and r.rate is not null
      and r.max_running is not null
  ), counted as (
    select tasker.count_enqueued(array_agg(c.namespace_id), array_agg(-1)) from claimed c having count(*) > 0
  )
  select jsonb_build_object(
    'claims', (
      select jsonb_agg(tasker.claim_json(c.workflow_step_uuid, c.task_uuid, c.name, c.template_id, c.ordinal,
        c.claim_token, c.attempts, v_own->c.workflow_step_uuid::text, case when c.attempts > 2
          then tasker.needs_isolation(c.task_uuid, c.workflow_step_uuid, c.attempts - 1) end,
        case when c.attempts > 1 then tasker.ran_ms(c.workflow_step_uuid, c.template_id, c.ordinal) end)
        || jsonb_build_object('waited_ms', round(extract(epoch from v_now - c.hinted_at) * 1000))
        order by c.workflow_step_uuid) from claimed c),
    'counted', (select count(*) from counted))
  into v_claims;

  v_dead := cardinality(v_steps) - coalesce(cardinality(v_found), 0) - coalesce(cardinality(v_heavy), 0)
    - cardinality(v_lacking) - cardinality(v_paused)
    - cardinality(v_early);
  if v_dead > 0 then
    select jsonb_object_agg(x.step, 'unknown') into v_verdicts from unnest(v_steps) as x (step)
    where not exists (select from tasker.workflow_steps s where s.workflow_step_uuid = x.step);
  end if;
  if cardinality(v_paused) > 0 then
    v_aside := tasker.hold_paused_steps(v_paused, p_args);
    v_verdicts := coalesce(v_verdicts, '{}') || (v_aside->'verdicts');
    v_refused := nullif(coalesce(v_refused, '[]') || (v_aside->'send'), '[]');
  end if;
  if cardinality(v_early) > 0 then
    v_aside := tasker.hold_paused_steps(v_early, p_args || '{"reason": "ordered"}');
    v_verdicts := coalesce(v_verdicts, '{}') || (v_aside->'verdicts');
    v_refused := nullif(coalesce(v_refused, '[]') || (v_aside->'send'), '[]');
  end if;
  if p_args ? 'known' then
    v_found := array(select (c->>'step')::uuid
      from jsonb_array_elements(coalesce(nullif(v_claims->'claims', 'null'), '[]')) c
      where not p_args->'known' ? (c->>'task'));
  end if;
  return v_claims - 'counted'
    || jsonb_build_object('dead', nullif(v_dead, 0), 'verdicts', v_verdicts, 'send', v_refused,
      'later', (select jsonb_object_agg(r->>'step', r->'delay_ms') from jsonb_array_elements(v_refused) r
        where r ? 'delay_ms'))
    || tasker.shared_inputs(coalesce(v_found, '{}'))
    || tasker.releasable(p_args);
end
$$;
