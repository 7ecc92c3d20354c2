-- The durable events of a write: one row for each that a template declares on what was accepted, in its transaction, under
-- the locks of its tasks. What the worker made of them comes with the items: `ev` holds, by the event's number, {id, p
-- payload, m metadata, by publisher} or {w why it is not published}; a number that is missing has the result as payload,
-- or what failed. Without `ev` nobody had the result in hand (a lost worker, an operator): then the payload is made here,
-- and an event whose payload must fit a schema is withheld.
create or replace function tasker.write_events(p_args jsonb, p_judged tasker.judged_change[], p_now timestamptz) returns void
language plpgsql
set enable_hashjoin to on
as $$
begin
  insert into tasker.domain_events (created_at, event_uuid, task_uuid, workflow_step_uuid, correlation_id, namespace_id,
    sort_key, number, attempt, name, step_name, outcome, delivery_mode, fired_by, payload, metadata, withheld)
  select p_now, coalesce((q.made->>'id')::uuid, tasker.uuid_v7()), q.task_uuid, q.step_uuid, q.correlation_id, q.namespace_id,
    q.sort_key, q.number, q.attempt, q.name, q.step_name, q.outcome, q.delivery_mode,
    coalesce(q.made->>'by', case when q.known then 'generic_publisher' else 'tasker' end),
    case when q.withheld is null then coalesce(q.made->'p', q.own, '{}') end, q.made->'m', q.withheld
  from (
    select j.task_uuid, j.step_uuid, d.correlation_id, j.namespace_id, j.sort_key, e.number, j.attempt, e.name,
      j.name as step_name, o.outcome, e.delivery_mode, i.ev is not null as known, i.ev->e.number::text as made,
      case when i.ev is null and e.checked then 'its payload was held against no schema: no worker had the result'
        else i.ev->e.number::text->>'w' end as withheld,
      case when o.outcome = 'success' then coalesce(j.result, (select r.result from tasker.step_results r
          where r.task_uuid = j.task_uuid and r.ordinal = j.ordinal and r.workflow_step_uuid = j.step_uuid))
        else (coalesce(j.error, (select f.error from tasker.step_failures f where f.task_uuid = j.task_uuid
          and f.workflow_step_uuid = j.step_uuid order by f.failure_id desc limit 1)))
          - '{handler,metadata,detail,final,fingerprint,retry_in_ms}'::text[] end as own
    from unnest(p_judged) j
    cross join lateral (select tasker.event_outcome(j.kind) as outcome offset 0) o
    join tasker.template_events e on e.template_id = j.template_id and e.ordinal = j.ordinal
      and tasker.event_fires(e.condition, o.outcome)
    join tasker.task_details d on d.task_uuid = j.task_uuid
    left join (
      select distinct on (g.s) g.s, coalesce(g.ev, p.events) as ev
      from jsonb_to_recordset(p_args->'items') as g (s uuid, k bigint, ev jsonb)
      left join tasker.parked_events p on p.workflow_step_uuid = g.s and p.claim_token = g.k
      order by g.s, g.k desc nulls last) i on i.s = j.step_uuid
    order by j.step_uuid, e.number) q;

  delete from tasker.parked_events p where p.workflow_step_uuid in (select j.step_uuid from unnest(p_judged) j);
end
$$;
