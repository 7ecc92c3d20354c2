-- Stores the output of handlers: log lines, which are kept for good, and progress, which is valid only for
-- the claim that reported it and until its next report. Takes no locks of tasks or steps: no component waits
-- for this, and no step needs it. A repeated call changes nothing. Times are passed as ages, because clocks
-- differ.
-- p_args: {lines: [{task, step, token, attempt, number, ago_ms, level, logger, message, fields}], progress:
--   [{task, step, token, attempt, fraction, done, total, message}]}.
-- Returns: {}.
create or replace function tasker.report_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
begin
  insert into tasker.step_logs (workflow_step_uuid, claim_token, line, task_uuid, logged_at, attempt, level,
    logger, message, fields)
  select l.step, l.token, l.number, l.task, v_now - tasker.ms(greatest(l.ago_ms, 0)), l.attempt, l.level,
    l.logger, l.message, nullif(l.fields, 'null')
  from jsonb_to_recordset(p_args->'lines') l (task uuid, step uuid, token bigint, attempt int, number int,
    ago_ms numeric, level smallint, logger text, message text, fields jsonb)
  -- else it was pruned meanwhile
  where exists (select from tasker.workflow_steps s where s.workflow_step_uuid = l.step)
  on conflict do nothing;

  insert into tasker.step_progress as k (workflow_step_uuid, task_uuid, claim_token, fraction, done,
    total, message, first_at, first_fraction, reported_at)
  select p.step, p.task, p.token, p.fraction, p.done, p.total, p.message, v_now, p.fraction, v_now
  from jsonb_to_recordset(p_args->'progress') p (task uuid, step uuid, token bigint,
    fraction double precision, done double precision, total double precision, message text)
  where exists (select from tasker.workflow_steps s
    where s.workflow_step_uuid = p.step and s.state = 'in_progress' and s.claim_token = p.token)
  order by p.step
  on conflict (workflow_step_uuid) do update set claim_token = excluded.claim_token,
    fraction = excluded.fraction, done = excluded.done, total = excluded.total, message = excluded.message,
    reported_at = excluded.reported_at,
    first_at = case when k.claim_token = excluded.claim_token and k.first_fraction is not null then k.first_at
      else excluded.first_at end,
    first_fraction = case
      when k.claim_token = excluded.claim_token and k.first_fraction is not null then k.first_fraction
      else excluded.first_fraction end
  where k.claim_token <= excluded.claim_token;
  return '{}';
end
$$;

-- The latest reported progress of a step, as views show it; null unless the claim that reported it still
-- runs. The remaining time is estimated from the pace since the first report of the claim.
create or replace function tasker.reported(p tasker.step_progress, s tasker.workflow_steps) returns jsonb
language sql stable
return case when s.state = 'in_progress' and p.claim_token = s.claim_token then jsonb_build_object(
  'percent', round((100 * p.fraction)::numeric, 1), 'done', p.done, 'total', p.total, 'message', p.message,
  'reported_at', p.reported_at, 'eta_seconds', case when p.fraction > p.first_fraction then round((
    extract(epoch from p.reported_at - p.first_at)::double precision
      * (1 - p.fraction) / (p.fraction - p.first_fraction))::numeric)
  end) end;
