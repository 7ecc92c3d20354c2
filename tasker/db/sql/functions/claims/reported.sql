-- The latest reported progress of a step, as views show it; null unless the claim that reported it still runs. The
-- remaining time is estimated from the pace since the first report of the claim.
create or replace function tasker.reported(p tasker.step_progress, s tasker.workflow_steps) returns jsonb
language sql stable
return case when s.state = 'in_progress' and p.claim_token = s.claim_token then jsonb_build_object(
  'percent', round((100 * p.fraction)::numeric, 1), 'done', p.done, 'total', p.total, 'message', p.message,
  'reported_at', p.reported_at, 'eta_seconds', case when p.fraction > p.first_fraction then round((
    extract(epoch from p.reported_at - p.first_at)::double precision * (1 - p.fraction) / (p.fraction - p.first_fraction))::numeric)
  end) end;
