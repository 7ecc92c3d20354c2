-- Writes the durable events of a write, in its transaction and under the locks of its tasks: one row for each
-- event that a template declares for the accepted outcome, then one for each that the handler published
-- itself for that outcome. The items carry the worker's part in `ev`: by the event's number {id, p payload, m
-- metadata, by publisher} or {w reason why it is not published}, and for the handler's own events also {n
-- name, c condition, d delivery mode}. A declared event missing from `ev` has the result, or the failure, as
-- payload. Without `ev` no worker had the result (a lost worker, an operator action): the payload is made
-- here, and an event whose payload must match a schema is withheld.
create or replace function tasker.write_events(p_args jsonb, p_judged tasker.judged_change[],
  p_now timestamptz) returns void
language plpgsql
set enable_hashjoin to on
as $$
begin
  with written as (
    insert into tasker.domain_events (created_at, event_uuid, task_uuid, workflow_step_uuid,
      correlation_id, namespace_id,
      sort_key, number, attempt, name, step_name, outcome, delivery_mode, fired_by, payload, metadata,
      withheld, published_with)
    select p_now, coalesce((e.made->>'id')::uuid, tasker.uuid_v7()), q.task_uuid, q.step_uuid,
      q.correlation_id, q.namespace_id, q.sort_key, e.number, q.attempt, e.name, q.name, q.outcome,
      e.delivery_mode,
      coalesce(e.made->>'by', case when q.ev is not null then 'generic_publisher' else 'tasker' end),
      case when e.withheld is null then coalesce(e.made->'p', e.own, '{}') end, e.made->'m', e.withheld,
        e.published_with
    from (
      select j.*, d.correlation_id, o.outcome, i.ev
      from unnest(p_judged) j
      cross join lateral (select tasker.event_outcome(j.kind) as outcome offset 0) o
      join tasker.task_details d on d.task_uuid = j.task_uuid
      left join (
        select distinct on (g.s) g.s, coalesce(g.ev, p.events) as ev
        from jsonb_to_recordset(p_args->'items') as g (s uuid, k bigint, ev jsonb)
        left join tasker.parked_events p on p.workflow_step_uuid = g.s and p.claim_token = g.k
        order by g.s, g.k desc nulls last) i on i.s = j.step_uuid
      where o.outcome is not null
    ) q cross join lateral (
      select e.number, e.name, e.delivery_mode, q.ev->e.number::text as made, null::int as published_with,
        case when q.ev is null and e.checked
          then 'its payload was held against no schema: no worker had the result'
          else q.ev->e.number::text->>'w' end as withheld,
        case when q.outcome = 'success' then coalesce(q.result, (select r.result from tasker.step_results r
            where r.task_uuid = q.task_uuid and r.ordinal = q.ordinal and r.workflow_step_uuid = q.step_uuid))
          else (coalesce(q.error, (select f.error from tasker.step_failures f where f.task_uuid = q.task_uuid
            and f.workflow_step_uuid = q.step_uuid order by f.failure_id desc limit 1)))
            - '{handler,metadata,detail,final,fingerprint,retry_in_ms}'::text[] end as own
      from tasker.template_events e
      where e.template_id = q.template_id and e.ordinal = q.ordinal
        and tasker.event_fires(e.condition, q.outcome)
      union all
      select h.number::int, h.made->>'n', h.made->>'d', h.made, count(*) over ()::int, h.made->>'w', null
      from jsonb_each(q.ev) as h (number, made)
      where h.made ? 'n' and tasker.event_fires(h.made->>'c', q.outcome)
    ) e
    order by q.step_uuid, e.number
    returning event_id, withheld
  )
  insert into tasker.unplaced_events (event_id) select w.event_id from written w where w.withheld is null;

  delete from tasker.parked_events p
  where p.workflow_step_uuid in (select j.step_uuid from unnest(p_judged) j);
end
$$;

-- True if an event with this condition is published for this outcome; a null outcome publishes none.
create or replace function tasker.event_fires(p_condition text, p_outcome text) returns boolean
language sql immutable parallel safe as $$
  select p_outcome is not null
    and (p_condition in (p_outcome, 'always') or p_condition = 'failure' and p_outcome <> 'success')
$$;

-- The outcome that events of the step are published for, by the kind of change; null for changes that end no
-- attempt. An operator who completes a step gives it a result, so the outcome is success; resolving a step
-- without a result is no outcome.
create or replace function tasker.event_outcome(p_kind text)
returns text language sql immutable parallel safe as $$
  select case when tasker.kind_stores_result(p_kind) then 'success'
    when p_kind = 'retry' then 'retryable_failure'
    when tasker.kind_stores_failure(p_kind) then 'permanent_failure' end
$$;

-- The outcome of an attempt by the row of the history that ended it (event_outcome gives the same for the
-- change); null for rows that ended none.
create or replace function tasker.outcome_of_path(p_code text)
returns text language sql immutable parallel safe as $$
  select case when right(p_code, 1) = 'C' then 'success' when right(p_code, 1) = 'F' then 'permanent_failure'
    when right(p_code, 2) = 'XW' then 'retryable_failure' end
$$;
