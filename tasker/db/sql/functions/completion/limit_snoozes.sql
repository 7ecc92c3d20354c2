-- The arguments of advance_v1, in which each snooze has its number since the step was created or reset and
-- the time until which it waits, for the history. One above the limit of its handler is a failure instead
-- (`snoozed_too_often`). Only the claim's own worker snoozes, so the number cannot change before the step is
-- locked.
create or replace function tasker.limit_snoozes(p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_now constant timestamptz := tasker.now();
  v_items jsonb;
begin
  select jsonb_agg(case when i->>'kind' <> 'snooze' then i
    when c.snoozes < (i->>'sn')::int then i - 'sn'
      || jsonb_build_object('n', coalesce(nullif(i->'n', 'null'), '{}')
      || jsonb_build_object('again', c.snoozes + 1, 'waited_until', v_now + tasker.ms((i->>'d')::numeric)))
    else i - '{sn,d,n,r}'::text[]
      || jsonb_build_object('kind', 'fail', 'e', jsonb_build_object('error_type', 'snoozed_too_often',
      'retryable', false, 'attempt', c.attempts,
      'final', 'the limit of again_in is reached', 'final_reason', 'snoozed_too_often',
      'fingerprint', left(md5('snoozed_too_often ' || c.template_id || ':' || c.ordinal), 16),
      'message', format('the handler asked %s times to be called again, and its limit is %s', c.snoozes + 1,
        i->>'sn'))) end order by x.n)
  into v_items
  from jsonb_array_elements(p_args->'items') with ordinality as x (i, n)
  left join lateral (
    select s.attempts, s.template_id, s.ordinal, (select count(*) from tasker.step_moves m
      where m.workflow_step_uuid = s.workflow_step_uuid and m.metadata ? 'again' and m.sort_key > coalesce((
        select max(r.sort_key) from tasker.step_moves r where r.workflow_step_uuid = s.workflow_step_uuid
          and left(r.path, 1) = tasker.path_code('error')), 0)) as snoozes
    from tasker.workflow_steps s
    where i->>'kind' = 'snooze' and s.workflow_step_uuid = (i->>'s')::uuid) c on true;
  return jsonb_set(p_args, '{items}', v_items);
end
$$;
